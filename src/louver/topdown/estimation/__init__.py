"""Estimating: from noisy answers to integer counts of every region, without opening the records."""
