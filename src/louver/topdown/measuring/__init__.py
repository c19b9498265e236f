"""Measuring: the noise of every query, the single pass over the records, and the sealed measurements."""
