"""The index of edges equals a count from scratch after every event, for whoever looks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.console.edges import STATES, EdgeIndex
from skerry.logic.fleet.console.filters import Sight, parse_filter
from skerry.logic.fleet.console.view import Window, map_and_list
from skerry.logic.fleet.overview.rows import edge_row
from tests.kit.chain.console_objects import location, slice_of, sync_target

STATE_OF = {
    "Ready": "healthy",
    "Syncing": "progressing",
    "Held": "degraded",
    "Refused": "degraded",
    "Unhealthy": "unhealthy",
    "Lost": "away",
    "NotJoined": "unknown",
}
CLUSTERS = ("a", "b", "c")
NAMES = ("one", "two", "three")
VALUES = ("prod", "stage")
LABELS = st.dictionaries(st.sampled_from(("env", "zone")), st.sampled_from(VALUES), max_size=2)
EVENTS = st.one_of(
    st.tuples(
        st.just("target"),
        st.sampled_from(CLUSTERS),
        st.sampled_from(NAMES),
        LABELS,
        st.sampled_from(tuple(STATE_OF)),
        st.integers(0, 3),
    ),
    st.tuples(st.just("gone"), st.sampled_from(CLUSTERS), st.sampled_from(NAMES)),
    st.tuples(
        st.just("location"),
        st.sampled_from(CLUSTERS),
        st.sampled_from(NAMES),
        LABELS,
        st.one_of(st.none(), LABELS),
    ),
    st.tuples(st.just("unlocated"), st.sampled_from(CLUSTERS), st.sampled_from(NAMES)),
    st.tuples(
        st.just("slice"),
        st.sampled_from(("w", "x")),
        st.sampled_from(("web", "web-2")),
        st.sampled_from(("web", "db")),
        st.sets(st.tuples(st.sampled_from(CLUSTERS), st.sampled_from(NAMES)), max_size=5),
    ),
    st.tuples(st.just("unsliced"), st.sampled_from(("w", "x")), st.sampled_from(("web", "web-2"))),
)
VIEWERS = (frozenset(CLUSTERS), frozenset("a"), frozenset("bc"), frozenset[str]())
FILTERS = (
    "",
    "env=prod",
    "env!=prod zone",
    "status:away",
    "placement:w/web",
    "t env",
    "reason:Held",
)


class Model:
    """All objects, and what can be counted of them without any index."""

    def __init__(self) -> None:
        self.targets: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.locations: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.slices: dict[tuple[str, str], tuple[str, set[tuple[str, str]]]] = {}

    def labels(self, key: tuple[str, str]) -> dict[str, str]:
        own = self.targets[key]["metadata"].get("labels") or {}
        found: dict[str, str] = {}
        for (cluster, _), obj in sorted(self.locations.items(), reverse=True):
            wanted = obj["spec"]["instanceSelector"]
            if cluster != key[0] or wanted is None:
                continue
            if (wanted.get("matchLabels") or {}).items() <= own.items():
                found |= obj["metadata"].get("labels") or {}
        return found | own

    def state(self, key: tuple[str, str]) -> str:
        return STATE_OF[edge_row(self.targets[key]).state]

    def holds(self, word: str, key: tuple[str, str]) -> bool:
        labels = self.labels(key)
        if word.startswith("status:"):
            return self.state(key) == word.removeprefix("status:")
        if word.startswith("reason:"):
            return edge_row(self.targets[key]).state == word.removeprefix("reason:")
        if word.startswith("placement:"):
            path, _, name = word.removeprefix("placement:").partition("/")
            return any(
                cluster == path and placement == name and key in members
                for (cluster, _), (placement, members) in self.slices.items()
            )
        name, found, value = word.partition("!=")
        if found:
            return labels.get(name) != value
        name, found, value = word.partition("=")
        if found:
            return labels.get(name) == value
        return word in key[1] or word in labels

    def matching(self, text: str, viewer: frozenset[str]) -> set[tuple[str, str]]:
        return {
            key
            for key in self.targets
            if key[0] in viewer and all(self.holds(word, key) for word in text.split())
        }


def play(index: EdgeIndex, model: Model, event: tuple[Any, ...]) -> None:
    kind, cluster, name, *rest = event
    key = (cluster, name)
    match kind:
        case "target":
            labels, state, heard = rest
            model.targets[key] = sync_target(cluster, name, labels, state, heard)
            index.put_sync_target(model.targets[key])
        case "gone":
            index.remove_sync_target(model.targets.pop(key, sync_target(cluster, name)))
        case "location":
            model.locations[key] = location(cluster, name, *rest)
            index.put_location(model.locations[key])
        case "unlocated":
            index.remove_location(model.locations.pop(key, location(cluster, name, {}, None)))
        case "slice":
            placement, members = rest
            model.slices[key] = (placement, members)
            index.put_slice(slice_of(cluster, name, placement, members))
        case _:
            model.slices.pop(key, None)
            index.remove_slice(slice_of(cluster, name, "", set()))


def compare(index: EdgeIndex, model: Model) -> None:
    for viewer in VIEWERS:
        seen = BitMap.union(*(index.by_cluster.get(each, BitMap()) for each in viewer), BitMap())
        sight = Sight(seen, lambda _: True, lambda path: path)
        for text in FILTERS:
            wanted = model.matching(text, viewer)
            matching = parse_filter(text).matching(index, sight)
            assert {index.key_of(number) for number in matching} == wanted
            view = map_and_list(
                index, matching, index.states, Window("env", 0, 50), lambda n: {"n": n}
            )
            states = Counter(map(model.state, wanted))
            assert view["counts"] == {state: states[state] for state in STATES}
            values = Counter(model.labels(key).get("env", "") for key in wanted)
            assert {each["value"]: each["count"] for each in view["groups"]} == dict(values)
            assert view["matching"] == len(wanted) == len(view["rows"])


# A nightly run asks for more: SKERRY_HISTORIES=1000.
@settings(max_examples=int(os.environ.get("SKERRY_HISTORIES", "150")), deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_the_index_equals_a_count_from_scratch_after_every_event(
    events: list[tuple[Any, ...]],
) -> None:
    index, model = EdgeIndex(), Model()
    for event in events:
        play(index, model, event)
        compare(index, model)


def test_numbers_of_edges_that_are_gone_are_given_again() -> None:
    index = EdgeIndex()
    for number in range(1000):
        index.put_sync_target(sync_target("a", f"edge-{number}"))
        index.remove_sync_target(sync_target("a", f"edge-{number}"))
    assert len(index.states) == 64
    assert not index.present
    assert not index.by_label


def test_a_heartbeat_is_no_change_of_the_fleet() -> None:
    index = EdgeIndex()
    index.put_sync_target(sync_target("a", "one", {}, "Ready", 1))
    version = index.version
    index.put_sync_target(sync_target("a", "one", {}, "Ready", 2))
    assert (index.version, index.heartbeats) == (version, 1)
    found = index.find(("a", "one"))
    assert found is not None
    assert found.heard is not None
    assert found.heard.minute == 2


def test_worst_come_first() -> None:
    index = EdgeIndex()
    for state in STATE_OF:
        index.put_sync_target(sync_target("a", state.lower(), {}, state, 1))
    seen = Sight(index.present, lambda _: True, lambda path: path)
    matching = parse_filter("").matching(index, seen)
    names = map_and_list(
        index, matching, index.states, Window(), lambda n: {"name": index.edge(n).name}
    )["rows"]
    assert [each["name"] for each in names] == [
        "unhealthy", "lost", "held", "refused", "notjoined", "syncing", "ready",
    ]  # fmt: skip


def test_placements_that_lead_to_an_edge_are_found_by_any_of_their_pages() -> None:
    index = EdgeIndex()
    index.put_slice(slice_of("w", "web-1", "web", {("a", "one")}))
    index.put_slice(slice_of("w", "web-2", "web", {("a", "two")}))
    index.put_slice(slice_of("v", "db", "db", {("a", "two")}))
    assert index.placements_at(("a", "two")) == [("v", "db"), ("w", "web")]
    assert index.placements_at(("a", "one")) == [("w", "web")]
    assert index.placements_at(("a", "three")) == []
    index.remove_slice(slice_of("w", "web-2", "web", set()))
    assert index.placements_at(("a", "two")) == [("v", "db")]
    assert index.find(("a", "one")) is None, "it is named, and no SyncTarget of it was seen"


def test_a_page_that_becomes_another_placements_is_no_more_the_first_ones() -> None:
    index = EdgeIndex()
    index.put_slice(slice_of("w", "page", "web", {("a", "one")}))
    index.put_slice(slice_of("w", "page", "db", {("a", "two")}))
    assert index.at_placement(("w", "web")) == BitMap()
    assert index.placements_at(("a", "one")) == []
    assert set(index.decided) == {("w", "db")}
    index.remove_slice(slice_of("w", "page", "", set()))
    assert (index.decided, index.number_of(("a", "two"))) == ({}, None)


def test_an_edge_that_slices_still_name_keeps_its_number() -> None:
    index = EdgeIndex()
    index.put_sync_target(sync_target("a", "one"))
    number = index.number_of(("a", "one"))
    index.put_slice(slice_of("w", "web", "web", {("a", "one")}))
    index.remove_sync_target(sync_target("a", "one"))
    assert index.number_of(("a", "one")) == number
    index.put_sync_target(sync_target("a", "two"))
    assert index.number_of(("a", "two")) != number
    index.remove_slice(slice_of("w", "web", "web", set()))
    assert index.number_of(("a", "one")) is None


def test_an_edge_is_at_the_first_location_with_labels_that_leads_to_it() -> None:
    index = EdgeIndex()
    assert index.location_of(("a", "one")) == "one"
    index.put_sync_target(sync_target("a", "one", {"env": "prod"}))
    assert index.location_of(("a", "one")) == "one", "no Location leads to it"
    index.put_location(location("a", "bare", {}, {}))
    assert index.location_of(("a", "one")) == "bare"
    index.put_location(location("a", "south", {"zone": "s"}, {"env": "prod"}))
    index.put_location(location("a", "north", {"zone": "n"}, {"env": "prod"}))
    index.put_location(location("a", "dev", {"zone": "d"}, {"env": "dev"}))
    assert index.location_of(("a", "one")) == "north"
    index.remove_location(location("a", "north", {}, None))
    index.remove_location(location("a", "never", {}, None))
    assert index.location_of(("a", "one")) == "south"


def test_what_is_gone_already_goes_without_a_change() -> None:
    index = EdgeIndex()
    version = index.version
    index.remove_sync_target(sync_target("a", "one"))
    index.remove_slice(slice_of("w", "web", "web", set()))
    assert index.version == version


def test_names_are_ranked_by_workspace_first_and_anew_when_one_comes() -> None:
    index = EdgeIndex()
    for key in (("b", "one"), ("a", "two")):
        index.put_sync_target(sync_target(*key))
    ranks = index.name_ranks()
    keys = [("a", "two"), ("b", "one")]
    assert sorted(keys, key=lambda key: ranks[index.number_of(key) or 0]) == keys
    index.put_sync_target(sync_target("a", "three"))
    again = index.name_ranks()
    keys = [("a", "three"), *keys]
    assert sorted(keys, key=lambda key: again[index.number_of(key) or 0]) == keys
    assert index.name_ranks() is again, "nothing came since"
