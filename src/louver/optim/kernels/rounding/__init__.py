"""Kernels of controlled rounding."""
