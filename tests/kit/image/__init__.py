"""Building and running images without an engine and without a registry."""
