"""TopDown: differentially private microdata over a hierarchy of regions, with public invariants kept exactly."""
