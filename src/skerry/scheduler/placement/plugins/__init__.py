"""The placement plugins that come with skerry."""
