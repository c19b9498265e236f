"""Kernels of `bounds`: which sums can be formed from row sums, and what rounded conditionals allow."""
