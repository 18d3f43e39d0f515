"""Revisioned key-value stores behind one protocol. Knows bytes and revisions, not objects."""
