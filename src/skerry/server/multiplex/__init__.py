"""Several watches in one stream, resumed from one revision."""
