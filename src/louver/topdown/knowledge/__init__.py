"""Public knowledge about the counts: invariants and bounds, their consequences, and whether they can all hold."""
