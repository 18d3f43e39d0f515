"""What a syncer counts stands on the registry of its process, under the names of the reference."""

from __future__ import annotations

from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.runtime.metrics import RuntimeMetrics


def test_a_process_shows_what_its_syncer_counts_beside_the_rest() -> None:
    runtime = RuntimeMetrics()
    metrics = SyncerMetrics(runtime)
    metrics.objects.labels("Applied").set(3)
    metrics.returned.labels("status").inc()
    value = runtime.registry.get_sample_value
    assert value("skerry_syncer_objects", {"state": "Applied"}) == 3
    assert value("skerry_syncer_returned_total", {"what": "status"}) == 1
    assert value("skerry_syncer_deletions_held") == 0


def test_two_syncers_of_one_test_do_not_share_a_registry() -> None:
    one, other = SyncerMetrics(), SyncerMetrics()
    one.held.set(5)
    assert other.runtime.registry.get_sample_value("skerry_syncer_deletions_held") == 0
