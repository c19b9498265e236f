"""What the data mean: attributes, hierarchies, recodes, structural zeros and the spec file."""
