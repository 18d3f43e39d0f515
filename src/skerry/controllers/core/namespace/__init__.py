"""Ends namespaces: removes everything in one that is being deleted, then lets it go.

Reads Namespaces, discovery, and the metadata of whatever a terminating namespace still holds.
Writes deletions of that content, the namespace's conditions, and in the end its ``finalize``
subresource.

Invariants: only content of a namespace with a deletionTimestamp is deleted. A namespace is let go
only when every type the server has could be listed and every list was empty: what could not be
read is not taken for absent.
"""
