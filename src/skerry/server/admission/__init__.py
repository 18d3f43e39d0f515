"""Admission: what the server itself adds to or refuses of a write."""
