"""Rows of the simplest kinds."""

from __future__ import annotations

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.holders import Sent
from skerry.logic.fleet.translation.ownership import owned_of
from skerry.logic.fleet.translation.rows import alone, taken
from skerry.logic.fleet.translation.sources import record_of, wide
from skerry.logic.fleet.translation.workspaces import path_scope
from tests.kit.chain.translator_world import cluster_object

ITEM = ObjectRef("", "", "configmaps", "n", "x")
RECORD = record_of(wide("", "v1", "configmaps"), cluster_object("one", "x", "n", data={}))
SENT = Sent("one", RECORD, [edge_placement_ref("one", "p")])


def test_what_nobody_else_places_is_what_its_workspace_has() -> None:
    row = alone(SENT)
    assert row.digest == RECORD.digest
    assert row.render is not None
    owned = owned_of(row.render())
    assert owned is not None
    assert owned.cluster == "one"


def test_who_may_place_a_name_that_is_taken_hears_whose_it_is_when_that_is_known() -> None:
    assert taken(ITEM, "two", None, [SENT]).missing == path_scope("two")
    [reported] = taken(ITEM, "two", "root:two", [SENT]).problems
    assert reported.placement == SENT.placements[0]
    assert "root:two" in reported.problem.message
