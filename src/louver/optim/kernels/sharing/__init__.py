"""Sharing out the people of regions among their children, and among the cells of a finer schema."""
