"""Regions rearranged for areas of interest: a public list of areas decides which leaves are measured together."""
