"""Kernels of `privacy.noise`: keyed random words, and the noise they select."""
