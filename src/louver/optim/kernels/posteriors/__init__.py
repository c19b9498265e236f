"""Posterior means of counts: empirical Bayes for many cells at once."""
