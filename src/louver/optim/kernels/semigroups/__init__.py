"""Kernels of `bounds`: which sums can be made of row sums, and what rounded conditionals allow."""
