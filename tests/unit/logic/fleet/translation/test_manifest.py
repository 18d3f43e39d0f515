"""A cut takes everything a placement sends, and nothing it does not."""

from __future__ import annotations

from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.revision.manifest import customizer_ref
from skerry.logic.fleet.translation.held import bare_digest
from skerry.logic.fleet.translation.manifest import (
    LiveState,
    live_scopes,
    live_state,
    what_digest,
)
from skerry.logic.fleet.translation.workspaces import NAMESPACE_WATCH, selection_scope
from tests.kit.chain.translator_world import CONFIG_MAPS, NAMESPACES, ROLES, World, cluster_object

GO = {"matchLabels": {"go": "yes"}}
NAMED = [
    {"apiGroup": ROLES.group, "resources": ["clusterroles"], "resourceNames": ["*"]},
    {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["named"]},
]


def state(world: World, placement: ObjectRef) -> LiveState:
    tables = world.tables
    return live_state(
        placement, "77", tables.route, tables.workspaces, lambda *key: world.customizers.get(key)
    )


def placed() -> tuple[World, ObjectRef]:
    world = World()
    for name in ("n", "named", "default"):
        world.put(NAMESPACES, cluster_object("one", name, labels={"go": "yes"}))
    world.put(NAMESPACES, cluster_object("one", "other"))
    notes = {"edge.kcp.io/customizer": "c", "edge.kcp.io/no-rollback": "true"}
    world.put(CONFIG_MAPS, cluster_object("one", "x", "n", data={"k": "v"}, notes=notes))
    world.put(CONFIG_MAPS, cluster_object("one", "x", "other", data={}))
    world.put(ROLES, cluster_object("one", "r", rules=[]))
    world.customize("one", "n", "c", {"path": "$.data.k", "value": '"y"'})
    return world, world.place("one", "p", namespaceSelector=GO, nonNamespacedObjects=NAMED)


def test_everything_selected_is_there_with_its_content() -> None:
    world, placement = placed()
    found = state(world, placement)
    items = {each.item: each for each in found.manifest.items}
    page, role = ObjectRef("", *CONFIG_MAPS, "n", "x"), ObjectRef("", *ROLES, "", "r")
    spaces = {namespace_ref(name) for name in ("n", "named", "default")}
    assert items.keys() == {page, role, *spaces}
    assert [each.item for each in found.manifest.inputs.customizers] == [customizer_ref("n", "c")]
    assert found.contents.keys() == found.manifest.names
    assert items[page].no_rollback
    assert not items[role].no_rollback
    bare = {each.name for each in spaces if items[each].digest == bare_digest(each)}
    assert bare == {"n", "default"}


def test_a_status_makes_no_other_revision_and_a_customizer_does() -> None:
    world, placement = placed()
    before = state(world, placement).manifest.digest
    world.put(ROLES, cluster_object("one", "r", rules=[], status={"a": 1}))
    assert state(world, placement).manifest.digest == before
    world.customize("one", "n", "c", {"path": "$.data.k", "value": '"z"'})
    assert state(world, placement).manifest.digest != before


def test_where_it_goes_is_no_part_of_what_is_selected_by() -> None:
    one = what_digest({"spec": {"namespaceSelector": GO, "locationSelectors": [{}]}})
    assert one == what_digest({"spec": {"namespaceSelector": GO, "upsync": []}})
    assert one != what_digest({"spec": {}})


def test_a_cut_depends_on_all_that_is_in_the_workspace() -> None:
    world, placement = placed()
    found = set(live_scopes(placement, world.tables.workspaces))
    assert {selection_scope(placement), NAMESPACE_WATCH} < found
    assert world.tables.dirty.scopes.missing(found) is None
