"""The self-contained HTML report: one file, no script, nothing fetched from a network."""
