"""Carries objects from the workspaces of workload owners into mailboxes.

Reads EdgePlacements, SinglePlacementSlices, Customizers and SyncerConfigs through the view of the
edge export, Locations through theirs, mailbox Workspaces in the provider's workspace; and across
all workspaces APIBindings, CustomResourceDefinitions, Namespaces and every type that travels.
Writes copies (label ``edge.kcp.io/projected=yes``), Namespaces for them and SyncerConfig
``the-one`` in mailboxes; conditions ``Translated`` and ``ConflictFree`` and Events of
EdgePlacements.

Invariants: once quiet, every mailbox holds what ``logic.translation.reference`` computes, and a
second pass writes nothing. Nothing is removed from a mailbox while something that could justify
it has not been read yet: a workspace's types, its namespaces, the objects of the type in
question, or what a malformed placement means. Objects that are not copies are never removed, nor
is a Namespace that holds one. The work done for a change is proportional to the change.
"""
