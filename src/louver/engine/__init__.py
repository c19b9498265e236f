"""Running many independent pieces of work, and picking up where a run stopped."""
