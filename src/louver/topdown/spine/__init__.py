"""Regions rearranged for areas that matter: a public list of areas decides which leaves are measured together."""
