"""Our own writes count until the cache has read beyond them."""

from __future__ import annotations

from skerry.api.edge import SliceOwner, edge_placement_ref, slice_ref
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.written import WrittenSlices
from skerry.logic.fleet.placement.slices import digest_of, lean_slice

PLACE, PLACEMENT = slice_ref("wmw", "web"), edge_placement_ref("wmw", "web")
NOTHING = digest_of([])


def a_slice(version: str, name: str = "web", *destinations: str) -> Object:
    return {
        "metadata": {
            "name": name,
            "uid": "u",
            "resourceVersion": version,
            "annotations": {"kcp.io/cluster": "wmw"},
            "ownerReferences": [SliceOwner("web", "u").reference()],
            "managedFields": [],
        },
        "destinations": [{"cluster": each} for each in destinations],
    }


class Cache:
    def __init__(self) -> None:
        self.seen = "5"


def test_what_we_wrote_counts_while_the_cache_is_behind() -> None:
    cache = Cache()
    written = WrittenSlices(lambda: cache.seen)
    written.note(a_slice("9"), digest_of([{"cluster": "a"}]))
    held = written.newest(PLACE, lean_slice(a_slice("4")))
    assert held is not None
    assert held.metadata["resourceVersion"] == "9"
    assert held.digest == digest_of([{"cluster": "a"}])
    assert "managedFields" not in held.metadata
    assert list(written.names(PLACEMENT)) == ["web"]


def test_the_cache_counts_once_it_has_read_beyond() -> None:
    cache = Cache()
    written = WrittenSlices(lambda: cache.seen)
    written.note(a_slice("9"), NOTHING)
    cache.seen = "9"
    assert written.newest(PLACE, None) is None, "it was deleted since"
    assert list(written.names(PLACEMENT)) == []


def test_an_answer_older_than_the_cache_is_not_remembered() -> None:
    cache = Cache()
    written = WrittenSlices(lambda: cache.seen)
    cache.seen = "12"
    written.note(a_slice("9"), NOTHING)
    assert written.newest(PLACE, None) is None


def test_our_own_event_is_known_by_its_version() -> None:
    written = WrittenSlices(lambda: "5")
    written.note(a_slice("9"), NOTHING)
    assert written.wrote(lean_slice(a_slice("9")))
    assert not written.wrote(lean_slice(a_slice("10")))
    assert not written.wrote(lean_slice(a_slice("9", "other")))


def test_an_event_that_overtakes_the_answer_is_known_by_its_content_once() -> None:
    written = WrittenSlices(lambda: "5")
    written.expect(PLACE, digest_of([{"cluster": "a"}]))
    assert not written.wrote(lean_slice(a_slice("9", "web", "b")))
    assert written.wrote(lean_slice(a_slice("9", "web", "a")))
    assert not written.wrote(lean_slice(a_slice("10", "web", "a")))
    written.expect(PLACE, NOTHING)
    written.expect_nothing(PLACE)
    assert not written.wrote(lean_slice(a_slice("9")))


def test_versions_that_are_no_numbers_are_not_remembered() -> None:
    written = WrittenSlices(lambda: "opaque")
    written.note(a_slice("also-opaque"), NOTHING)
    assert written.newest(PLACE, None) is None
