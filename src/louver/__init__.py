"""louver: publish statistics about people without publishing the people."""

__version__ = "0.1.0"
