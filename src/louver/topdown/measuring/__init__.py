"""Measuring: the noise of every query, the one pass over the records, and the sealed measurements."""
