"""Composition: the only place that builds things out of parts."""
