"""What a tab is sent of edges: within its rights, within its window, and within its limits."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from skerry.api.errors import BadRequest, Forbidden, NotFound
from skerry.web.fleet_view import EdgeView, FleetView, PlacementView, cell
from tests.kit.chain.console_feed import ALICE, BOB, Town
from tests.kit.chain.console_objects import (
    detail,
    location,
    placement,
    slice_of,
    summary,
    sync_target,
)

EDGES, PLACED, SLICES = "synctargets", "edgeplacements", "singleplacementslices"
SUMMARIES, CLUSTER_WIDE = "statussummaries", "clusterstatussummaries"
# As nobody but a tenant would write one by hand.
HOSTILE = {"resource": "x" * 1_000_000, "name": "\u202eevil\n" * 50_000, "y" * 1_000_000: "z"}
HOSTILE |= {f"member-{number}": "x" for number in range(5_000)}


def fleet(town: Town, user: Any = ALICE, **view: Any) -> FleetView:
    return FleetView(town.feed, town.eyes, user, view, lambda: 0.0)


def town_of(*states: str) -> Town:
    town = Town()
    for number, state in enumerate(states):
        labels = {"region": "north" if number % 2 else "south"}
        town.feed.edges.put_sync_target(sync_target("inv", f"edge-{number}", labels, state, 1))
    town.grant(ALICE, "inv", EDGES)
    return town


def cells(view: Any) -> list[int]:
    return list(base64.b64decode(view["cells"]))


def test_a_fleet_is_a_sentence_counts_groups_a_map_and_the_worst_first() -> None:
    town = town_of("Ready", "Lost", "Unhealthy", "Ready")
    town.feed.edges.put_location(location("inv", "all", {"env": "prod"}, {}))
    view = fleet(town, by="region", rows=[0, 2]).content()
    assert view["sentence"] == "2 of 4 edges need attention: 1 away, 1 unhealthy"
    assert (view["total"], view["matching"]) == (4, 4)
    assert view["counts"]["healthy"] == 2
    assert [(each["value"], each["count"]) for each in view["groups"]] == [
        ("north", 2),
        ("south", 2),
    ]
    assert cells(view) == [4, 0, 0, 3]
    assert [each["name"] for each in view["rows"]] == ["edge-2", "edge-1"]
    assert view["rows"][0] == {
        "ws": "root:inv",
        "name": "edge-2",
        "state": "unhealthy",
        "problem": "1 of 2 objects are unhealthy",
        "heard": "2030-01-01T00:01:00Z",
        "labels": {"env": "prod", "region": "south"},
    }
    assert view["keys"] == ["env", "region"]
    assert view["facets"] == {"reason": {"Lost": 1, "Ready": 2, "Unhealthy": 1}}


def test_an_edge_that_may_not_be_seen_is_in_no_count_group_key_or_row() -> None:
    town = town_of("Ready", "Lost")
    town.feed.edges.put_sync_target(sync_target("theirs", "secret", {"codename": "x"}, "Lost", 1))
    town.grant(BOB, "theirs", EDGES)
    mine = fleet(town).content()
    assert "secret" not in str(mine)
    assert "codename" not in str(mine)
    assert (mine["total"], mine["counts"]["away"]) == (2, 1)
    assert fleet(town, BOB).content()["total"] == 1
    assert fleet(town, q="codename").content()["matching"] == 0


def test_a_right_taken_away_empties_the_view_at_once() -> None:
    town = town_of("Ready")
    view = fleet(town)
    before, version = view.content(), view.version()
    town.revoke(ALICE, "inv")
    assert view.version() != version
    after = view.content()
    assert (after["total"], after["rows"], cells(after)) == (0, [], [])
    assert view.patch(before, after)["rows"] == []


def test_a_patch_has_the_cells_and_rows_that_differ() -> None:
    town = town_of(*["Ready"] * 40)
    view = fleet(town, rows=[0, 40])
    before = view.content()
    assert view.patch(before, view.content()) == {}
    labels = {"region": "north"}
    town.feed.edges.put_sync_target(sync_target("inv", "edge-7", labels, "Lost", 1))
    patch = view.patch(before, view.content())
    [[at, state]] = patch["cells"]
    assert state == 4
    assert cell(town.feed, town.eyes, ALICE, {"index": at}) == {"ws": "root:inv", "name": "edge-7"}
    assert patch["rows"]["0"]["name"] == "edge-7"
    assert patch["counts"]["away"] == 1


def test_only_the_window_is_sent_whatever_the_number_of_edges() -> None:
    town = town_of(*["Ready"] * 500)
    assert len(fleet(town, rows=[480, 530]).content()["rows"]) == 20
    assert fleet(town, rows=[10_000, 10_050]).content()["rows"] == []
    for rows in ([0, 1_000_000], [-1, 5], [5, 1], "all", [0, 1.5], [0]):
        with pytest.raises(BadRequest, match="rows:"):
            fleet(town, rows=rows)
    with pytest.raises(BadRequest, match="by:"):
        fleet(town, by="x" * 400)


def test_hostile_text_is_sent_in_one_short_line() -> None:
    town = Town()
    target = sync_target("inv", "edge", {"a": "<img src=x onerror=alert(1)>"}, "Lost", 1)
    target["status"]["conditions"][0]["message"] = "\u202e<script>\x00\n" + "é" * 1_000_000
    town.feed.edges.put_sync_target(target)
    town.grant(ALICE, "inv", EDGES)
    [row] = fleet(town).content()["rows"]
    assert len(row["problem"].encode()) <= 256
    assert "\u202e" not in row["problem"]
    assert "\n" not in row["problem"]
    assert row["labels"] == {"a": "<img src=x onerror=alert(1)>"}


def test_very_many_values_of_a_label_are_a_bounded_number_of_groups() -> None:
    town = Town()
    for number in range(300):
        town.feed.edges.put_sync_target(sync_target("inv", f"e{number}", {"id": str(number)}))
    town.grant(ALICE, "inv", EDGES)
    groups = fleet(town, by="id").content()["groups"]
    assert len(groups) == 201
    assert groups[-1]["count"] == 100
    assert sum(each["count"] for each in groups) == 300


def placed() -> Town:
    town = town_of("Ready", "Lost", "Ready")
    members = {("inv", f"edge-{n}") for n in range(3)}
    town.feed.edges.put_slice(slice_of("work", "web", "web", members))
    town.feed.placements.put_placement(placement("work", "web", destinationCount=3))
    town.feed.placements.put_summary(
        summary(
            "work",
            "web",
            "web",
            detail("inv", "edge-0", "False", reason="CrashLoopBackOff", message="exit 1"),
            detail("inv", "edge-1", "Unknown", reason="LeaseLapsed"),
            detail("inv", "edge-2"),
        )
    )
    town.grant(ALICE, "work", PLACED, SLICES, SUMMARIES)
    return town


def test_a_placement_shows_its_objects_and_how_it_fares_at_each_destination() -> None:
    town = placed()
    view = {"ws": "root:work", "name": "web"}
    shown = PlacementView(town.feed, town.eyes, ALICE, view).content()
    assert cells(shown) == [3, 4, 0]
    [stage] = shown["stages"]
    assert {key: stage[key] for key in ("wanted", "delivered", "reported", "healthy")} == {
        "wanted": 3,
        "delivered": 3,
        "reported": 3,
        "healthy": 1,
    }
    assert shown["rows"][0]["problem"] == "CrashLoopBackOff exit 1"
    assert [each["reason"] for each in shown["problems"]] == ["CrashLoopBackOff", "LeaseLapsed"]
    lost = PlacementView(town.feed, town.eyes, ALICE, {**view, "q": "status:away"}).content()
    assert [each["name"] for each in lost["rows"]] == ["edge-1"]
    at = cell(town.feed, town.eyes, ALICE, {"index": 1, "placement": view})
    assert at["name"] == "edge-1"


def test_of_destinations_in_somebody_elses_inventory_only_the_name_is_shown() -> None:
    town = placed()
    town.grant(BOB, "work", PLACED, SLICES, SUMMARIES)
    shown = PlacementView(town.feed, town.eyes, BOB, {"ws": "root:work", "name": "web"}).content()
    assert shown["rows"][0] == {
        "ws": "?",
        "name": "edge-0",
        "heard": None,
        "labels": {},
        "state": "unhealthy",
        "problem": "CrashLoopBackOff exit 1",
    }
    assert shown["keys"] == []
    view = {"ws": "root:work", "name": "web", "q": "region=north"}
    assert PlacementView(town.feed, town.eyes, BOB, view).content()["rows"] == []


def test_who_may_not_read_slices_or_summaries_learns_nothing_of_them() -> None:
    town = placed()
    view = {"ws": "root:work", "name": "web"}
    town.grant(BOB, "work", PLACED)
    town.grant(BOB, "inv", EDGES)
    shown = PlacementView(town.feed, town.eyes, BOB, view).content()
    assert (shown["total"], shown["matching"], shown["keys"]) == (0, 0, [])
    assert (shown["stages"], shown["problems"]) == ([], [])
    assert shown["hidden"] == [f"{each}.edge.kcp.io" for each in (SLICES, SUMMARIES, CLUSTER_WIDE)]
    assert fleet(town, BOB, q="placement:root:work/web").content()["matching"] == 0
    edge = {"ws": "root:inv", "name": "edge-0"}
    assert EdgeView(town.feed, town.eyes, BOB, edge).content()["objects"] == []
    town.grant(BOB, "work", SLICES)
    shown = PlacementView(town.feed, town.eyes, BOB, view).content()
    assert (shown["total"], cells(shown)) == (3, [5, 5, 5])
    assert {row["problem"] for row in shown["rows"]} == {""}
    there = EdgeView(town.feed, town.eyes, BOB, edge).content()
    assert (there["placements"], there["objects"]) == ([{"ws": "root:work", "name": "web"}], [])
    assert fleet(town, BOB, q="placement:root:work/web").content()["matching"] == 3


def test_a_hostile_object_of_a_summary_is_sent_in_short_lines() -> None:
    town = placed()
    bad = {**summary("work", "web", "bad", detail("inv", "edge-0")), "object": HOSTILE}
    town.feed.placements.put_summary(bad)
    edge = EdgeView(town.feed, town.eyes, ALICE, {"ws": "root:inv", "name": "edge-0"})
    assert len(orjson.dumps(edge.content())) < 4_000
    whole = PlacementView(town.feed, town.eyes, ALICE, {"ws": "root:work", "name": "web"})
    assert len(orjson.dumps(whole.content())) < 8_000


def test_destinations_that_no_summary_names_are_unknown_while_more_may_be_unwell() -> None:
    town = placed()
    unwell = detail("inv", "edge-0", "False", reason="Bad")
    town.feed.placements.put_summary(summary("work", "web", "web", unwell, destinations=3))
    view = PlacementView(town.feed, town.eyes, ALICE, {"ws": "root:work", "name": "web"})
    assert cells(view.content()) == [3, 5, 5]


def test_what_may_not_be_read_is_refused_with_the_verb_and_the_kind() -> None:
    town = placed()
    for view, said in (
        (PlacementView(town.feed, town.eyes, BOB, {"ws": "root:work", "name": "web"}), PLACED),
        (PlacementView(town.feed, town.eyes, BOB, {"ws": "root:none", "name": "web"}), PLACED),
        (EdgeView(town.feed, town.eyes, BOB, {"ws": "root:inv", "name": "edge-0"}), EDGES),
    ):
        with pytest.raises(Forbidden, match=f"you may not list {said}"):
            view.content()
    missing = PlacementView(town.feed, town.eyes, ALICE, {"ws": "root:work", "name": "db"})
    with pytest.raises(NotFound):
        missing.content()


def test_an_edge_shows_every_object_that_should_be_there() -> None:
    town = placed()
    shown = EdgeView(town.feed, town.eyes, ALICE, {"ws": "root:inv", "name": "edge-0"}).content()
    assert shown["state"] == "healthy"
    [entry] = shown["objects"]
    assert entry["placement"] == {"ws": "root:work", "name": "web"}
    assert (entry["delivered"], entry["healthy"]) == (True, False)
    assert entry["cause"] == "CrashLoopBackOff exit 1"
    orjson.dumps(shown)
    town.revoke(ALICE, "work")
    view = EdgeView(town.feed, town.eyes, ALICE, {"ws": "root:inv", "name": "edge-0"})
    assert view.content()["objects"] == []
