"""Kernels of `anonymize`: what classes of records lose, and the searches for classes that lose little."""
