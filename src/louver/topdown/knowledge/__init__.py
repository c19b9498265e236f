"""What is publicly known about the counts: invariants and bounds, what they imply, and whether they can all hold."""
