"""The self-contained HTML report: one file without scripts that fetches nothing from a network."""
