"""anonymize: k-anonymous microdata with the least information loss (Liang & Samavi 2020)."""
