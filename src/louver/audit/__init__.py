"""audit: what several published tables give away together."""
