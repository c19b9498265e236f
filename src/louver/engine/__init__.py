"""Running many independent tasks, and resuming a stopped run."""
