"""Kernels of `anonymize`: the information loss of classes of records, and searches for classes with little loss."""
