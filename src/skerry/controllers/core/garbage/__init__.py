"""Collects garbage: what belongs to an owner goes when the owner goes.

Reads the metadata of every object of every type that can be listed, watched and deleted (Events
apart), and live objects before it acts. Writes deletions of dependents, removals of owner
references that lead nowhere, and removals of the finalizers ``foregroundDeletion`` and
``orphan``.

Invariants. An object is deleted only when it names at least one owner and every owner it names
was verified absent by a live read (or is waiting for it in foreground deletion); the deletion
carries the uid and resourceVersion that were read. An owner in foreground deletion goes after
everything that blocks it; an orphaning owner goes after its dependents have forgotten it. An
owner that cannot be looked up, because its type is not served or its server is away, counts as
present.
"""
