"""Stored values as the answer to a request: negotiated, at the version asked for, in turns."""
