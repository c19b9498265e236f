"""The release directory: what leaves the house, the manifest that describes it, and the check that doubts it."""
