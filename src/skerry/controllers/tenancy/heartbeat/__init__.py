"""Judges heartbeats: a SyncTarget not heard of for as long as its Lease lasts is not ready.

Reads SyncTargets; writes their conditions ``HeartbeatHealthy`` and ``Ready``. ``Ready`` is the
summary of whichever of ``SyncerReady``, ``APIImporterReady`` and ``HeartbeatHealthy`` exist; the
other two belong to others and are left alone.
"""
