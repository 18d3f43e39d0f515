"""The search: everything that has a view, as far as somebody may list it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from skerry.api.edge import ROLLOUTS, STATUS_QUERIES
from skerry.api.errors import BadRequest
from skerry.api.kcp.resources import WORKSPACES
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.web.search import found_by_name
from tests.kit.chain.console_feed import ALICE, BOB, Town
from tests.kit.chain.console_objects import placement, sync_target


class Followed:
    """An informer of workspaces, of which only the keys are asked."""

    def __init__(self, *keys: Key) -> None:
        self.index = keys

    def add_handler(self, handle: Any) -> None:
        """There are no events."""


def named(cluster: str, name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {"kcp.io/cluster": cluster}}}


def town() -> Town:
    found = Town()
    for cluster in ("a", "b"):
        found.feed.edges.put_sync_target(sync_target(cluster, f"good-edge-{cluster}"))
        found.feed.placements.put_placement(placement(cluster, f"good-{cluster}"))
        found.feed.objects[ROLLOUTS].put(named(cluster, f"good-rollout-{cluster}"))
        found.feed.objects[STATUS_QUERIES].put(named(cluster, f"good-query-{cluster}"))
    keys = (Key("a", "", "good-below"), Key("b", "", "good-hidden"))
    found.feed.follow(WORKSPACES, cast("Informer", Followed(*keys)))
    kinds = ("synctargets", "edgeplacements", "rollouts", "statusqueries", "workspaces")
    found.grant(ALICE, "a", *kinds)
    return found


def test_everything_with_a_view_is_found_where_it_may_be_listed_and_nowhere_else() -> None:
    place = town()
    found = found_by_name(place.feed, place.eyes, ALICE, {"q": "GOOD"})
    assert [(each["kind"], each["ws"], each["name"]) for each in found] == [
        ("edge", "root:a", "good-edge-a"),
        ("placement", "root:a", "good-a"),
        ("rollout", "root:a", "good-rollout-a"),
        ("query", "root:a", "good-query-a"),
        ("workspace", "root:a", "good-below"),
    ]
    assert found_by_name(place.feed, place.eyes, BOB, {"q": "good"}) == []
    place.revoke(ALICE, "a")
    assert found_by_name(place.feed, place.eyes, ALICE, {"q": "good"}) == []


def test_every_word_must_be_in_the_name() -> None:
    place = town()
    found = found_by_name(place.feed, place.eyes, ALICE, {"q": "query good"})
    assert [each["name"] for each in found] == ["good-query-a"]
    with pytest.raises(BadRequest, match="q: want words"):
        found_by_name(place.feed, place.eyes, ALICE, {"q": "x" * 2000})


def test_of_each_kind_as_many_are_found_as_anybody_reads() -> None:
    place = Town()
    for number in range(80):
        place.feed.edges.put_sync_target(sync_target("a", f"edge-{number}"))
        place.feed.placements.put_placement(placement("a", f"edge-web-{number}"))
    place.grant(ALICE, "a", "synctargets", "edgeplacements")
    found = found_by_name(place.feed, place.eyes, ALICE, {"q": "edge"})
    kinds = [each["kind"] for each in found]
    assert (kinds.count("edge"), kinds.count("placement")) == (50, 50)
