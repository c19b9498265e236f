"""Kernels of `topdown`: the counts of a parent's children, solved and rounded family by family."""
