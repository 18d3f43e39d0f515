"""What somebody may see is asked once per change of rights or of edges, and then remembered."""

from __future__ import annotations

import pytest

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.errors import Forbidden, NotFound
from tests.kit.chain.console_feed import ALICE, BOB, Town
from tests.kit.chain.console_objects import sync_target


def test_a_sight_is_remembered_until_rights_or_edges_change() -> None:
    town = Town()
    town.feed.edges.put_sync_target(sync_target("a", "one"))
    town.grant(ALICE, "a", "synctargets")
    first = town.eyes.sight(ALICE)
    assert len(first.edges) == 1
    assert town.eyes.sight(ALICE) is first
    assert not town.eyes.sight(BOB).edges
    town.feed.edges.put_sync_target(sync_target("a", "two"))
    assert len(town.eyes.sight(ALICE).edges) == 2
    town.revoke(ALICE, "a")
    assert not town.eyes.sight(ALICE).edges


def test_a_workspace_that_is_not_there_is_refused_like_one_that_may_not_be_read() -> None:
    town = Town()
    town.grant(ALICE, "a", "edgeplacements")
    assert town.eyes.cluster(ALICE, "root:a", EDGE_PLACEMENTS, "list") == "a"
    refusals = []
    for path in ("root:b", "nowhere"):
        with pytest.raises(Forbidden) as refused:
            town.eyes.cluster(ALICE, path, EDGE_PLACEMENTS, "list")
        refusals.append(refused.value.message.replace(path, "PATH"))
    assert refusals[0] == refusals[1]
    for wrong in (None, "", 7):
        with pytest.raises(NotFound):
            town.eyes.cluster(ALICE, wrong, EDGE_PLACEMENTS, "list")
