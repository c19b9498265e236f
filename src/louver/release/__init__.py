"""The release directory: what is published, the manifest that describes it, and the check that verifies it."""
