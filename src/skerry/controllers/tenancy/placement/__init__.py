"""Placements: which Location and which SyncTarget the namespaces of a workspace are meant for.

Reads Placements, Locations, SyncTargets and namespaces; writes ``status`` of Placements, their
annotation ``internal.workload.kcp.io/synctarget`` and the annotation
``scheduling.kcp.io/placement`` of the namespaces they select. All Placements of a workspace are
looked at together, since they share its namespaces. It is what ``kubectl kcp bind compute`` waits
for. Nothing is delivered by it: that is what EdgePlacements are for.
"""
