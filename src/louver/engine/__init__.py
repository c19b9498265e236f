"""Running many independent pieces of work, and resuming a stopped run."""
