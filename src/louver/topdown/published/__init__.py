"""Measurements in the layout of the Census Bureau's noisy measurement files: written from ours, and read with full validation."""
