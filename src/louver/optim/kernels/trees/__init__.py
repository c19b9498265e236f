"""Kernels of `groups`: numbers over a tree of regions that sum from children to parent."""
