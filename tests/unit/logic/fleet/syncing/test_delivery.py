"""The marks that tell how delivery went."""

from __future__ import annotations

from skerry.logic.fleet.syncing.delivery import content_mark, is_delivered, marked
from skerry.logic.fleet.syncing.outcome import APPLIED, SyncOutcome
from tests.kit.chain.synced_objects import whole_object


def test_a_mark_speaks_of_the_content_it_was_written_for() -> None:
    for generation in (None, 4):
        obj = whole_object()
        obj["metadata"]["generation"] = generation
        notes = marked(obj, APPLIED)
        assert notes is not None
        obj["metadata"]["annotations"] |= notes
        assert is_delivered(obj)
        assert marked(obj, APPLIED) in (None, {})
        if generation is None:
            obj["data"] = {"a": "2"}
        else:
            obj["metadata"]["generation"] = 5
        assert not is_delivered(obj)
        assert content_mark(obj) != notes["edge.kcp.io/applied"]


def test_a_failure_is_written_on_the_object_and_taken_away_again() -> None:
    obj = whole_object()
    reported = marked(obj, SyncOutcome("Failed", "Rejected", "no"))
    assert reported == {"edge.kcp.io/sync-error": "Rejected: no"}
    obj["metadata"]["annotations"] |= reported
    again = marked(obj, APPLIED)
    assert again is not None
    assert again["edge.kcp.io/sync-error"] is None


def test_a_kind_that_the_edge_does_not_serve_is_reported_and_a_short_wait_is_not() -> None:
    obj = whole_object()
    unknown = SyncOutcome("Waiting", "KindUnknown", "the edge does not serve widgets")
    assert marked(obj, unknown) == {
        "edge.kcp.io/sync-error": "KindUnknown: the edge does not serve widgets"
    }
    assert marked(obj, SyncOutcome("Waiting", "DependencyMissing", "no namespace")) is None


def test_a_failure_is_reported_in_one_line() -> None:
    reported = marked(whole_object(), SyncOutcome("Failed", "Rejected", "no\x1b[1m\nroom"))
    assert reported == {"edge.kcp.io/sync-error": "Rejected: no [1m room"}
