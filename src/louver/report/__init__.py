"""The self-contained HTML report: one file, without scripts, fetching nothing from a network."""
