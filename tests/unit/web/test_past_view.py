"""The fleet at a moment: what histories tell, to whoever may read them now."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.errors import BadRequest, NotFound
from skerry.logic.fleet.console.past import PLACED, Then
from skerry.logic.fleet.console.placements import HEALTHY, UNHEALTHY, UNKNOWN
from skerry.web.past_view import PastFleet, PastFleetView
from tests.kit.chain.console_feed import ALICE, BOB, Town
from tests.kit.chain.console_objects import sync_target

MOMENT = datetime(2030, 1, 1, 3, tzinfo=UTC)
PAST = PastFleet(
    MOMENT,
    {
        "shop": {
            ("inv", "bad"): Then(UNHEALTHY, "web: bad"),
            ("inv", "gone"): Then(HEALTHY, "web: good"),
        },
        "other": {("inv", "good"): Then(HEALTHY, "db: good")},
    },
    (("shop", "old", "its history begins later"), ("other", "x", "y")),
)


def town() -> Town:
    found = Town()
    for name, made in (("bad", "01"), ("good", "02"), ("late", "04")):
        target = sync_target("inv", name, {"region": "north"}, "Lost")
        target["metadata"]["creationTimestamp"] = f"2030-01-01T{made}:00:00Z"
        found.feed.edges.put_sync_target(target)
    found.grant(ALICE, "inv", "synctargets")
    for cluster in ("shop", "other"):
        found.grant(ALICE, cluster, "edgeplacements", "decisionrecords")
    return found


def view(where: Town, user: Any = ALICE, **given: Any) -> PastFleetView:
    return PastFleetView(where.feed, where.eyes, user, given, PAST)


def test_edges_are_as_they_were_and_those_of_later_are_not_there() -> None:
    shown = view(town(), by="region").content()
    assert shown["at"] == "2030-01-01T03:00:00Z"
    assert [(row["name"], row["state"], row["problem"]) for row in shown["rows"]] == [
        ("bad", "unhealthy", "web: bad"),
        ("good", "healthy", "db: good"),
    ]
    assert list(base64.b64decode(shown["cells"])) == [UNHEALTHY, HEALTHY]
    assert (shown["total"], shown["matching"]) == (3, 2)
    assert shown["sentence"] == "placements led to 2 of 2 edges; 1 bad; 1 good"
    assert shown["gone"] == {"count": 1, "names": ["gone"]}
    assert shown["untold"] == [
        {"placement": "root:shop/old", "why": "its history begins later"},
        {"placement": "root:other/x", "why": "y"},
    ]


def test_filters_are_about_states_of_then() -> None:
    where = town()
    assert view(where, q="status:away").content()["matching"] == 0
    found = view(where, q="status:healthy").content()
    assert [row["name"] for row in found["rows"]] == ["good"]
    assert view(where, q="status:healthy").cell(0) == {"ws": "root:inv", "name": "good"}
    with pytest.raises(NotFound):
        view(where, q="status:healthy").cell(1)
    with pytest.raises(BadRequest):
        view(where).cell("0")


def test_what_may_not_be_read_any_more_is_not_shown_any_more() -> None:
    where = town()
    looking = view(where)
    before = looking.version()
    assert looking.content()["counts"]["unhealthy"] == 1
    where.revoke(ALICE, "shop")
    assert looking.version() != before
    shown = looking.content()
    assert (shown["counts"]["unhealthy"], shown["counts"]["unknown"]) == (0, 1)
    assert shown["gone"]["count"] == 0
    assert [each["placement"] for each in shown["untold"]] == ["root:other/x"]
    assert view(where, BOB).content()["total"] == 0
    assert view(where, BOB).content()["rows"] == []
    # Either right alone is not enough.
    where.grant(ALICE, "shop", "edgeplacements")
    assert looking.content()["counts"]["unhealthy"] == 0


def test_where_a_placement_led_is_seen_though_nothing_was_judged() -> None:
    past = PastFleet(MOMENT, {"shop": {("inv", "good"): Then(UNKNOWN, "web: placed")}})
    where = town()
    shown = PastFleetView(where.feed, where.eyes, ALICE, {"by": "region"}, past).content()
    assert [(row["name"], row["state"]) for row in shown["rows"]] == [
        ("bad", "unknown"),
        ("good", "placed"),
    ]
    assert list(base64.b64decode(shown["cells"])) == [UNKNOWN, PLACED]
    assert shown["counts"]["unknown"] == 2
