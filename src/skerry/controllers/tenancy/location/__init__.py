"""Counts: how many SyncTargets a Location has, and how many of them are open for workloads.

Reads Locations and SyncTargets; writes ``status.instances`` and ``status.availableInstances`` of
Locations. The counts come from the same index as placements do, so they cost the change only.
"""
