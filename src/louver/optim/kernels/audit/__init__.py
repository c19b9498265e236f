"""Kernels of the joint audit: intervals, integer pivots, repair of a table, safe bounds."""
