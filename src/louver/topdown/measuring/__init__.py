"""Measuring: which query gets which noise, the one pass over the records, and the sealed measurements."""
