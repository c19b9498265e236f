"""The meaning of the data: attributes, hierarchies, recodes, structural zeros and the spec file."""
