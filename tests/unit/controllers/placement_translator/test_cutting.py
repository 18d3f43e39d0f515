"""Contents are written before the manifest that names them, and only what is new."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import CUT, CUT_SEQUENCE, SliceOwner, edge_placement_ref
from skerry.controllers.placement_translator.cutting import ObservedCut, decide_cut
from skerry.logic.fleet.revision.causes import Cause
from skerry.logic.fleet.revision.cut import Numbered, Settle
from skerry.logic.fleet.translation.manifest import live_state
from skerry.logic.machinery.plan import Create, Patch
from tests.kit.chain.revisions import manifest, pages, ref
from tests.kit.chain.translator_world import CONFIG_MAPS, NAMESPACES, World, cluster_object

WEB = edge_placement_ref("one", "web")


def observed(**more: Any) -> ObservedCut:
    world = World()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
    for name in "ab":
        world.put(CONFIG_MAPS, cluster_object("one", name, "n", data={"k": name}))
    world.place("one", "web", namespaceSelector={})
    tables = world.tables
    state = live_state(WEB, "77", tables.route, tables.workspaces, lambda *_: None)
    fields = {"settle": Settle(), "numbered": Numbered(3, 5, None, True), **more}
    return ObservedCut(WEB, SliceOwner("web", "u"), state=state, **fields)


def test_contents_come_first_and_the_manifest_last() -> None:
    plan = decide_cut(observed(causes=(Cause(ref("a"), "9", "kubectl"),)))
    *contents, page = plan
    assert (plan.contents, len(contents), plan.placement) == (3, 3, WEB)
    assert isinstance(page, Create)
    assert page.exclusive
    assert page.target.name == "web-3"
    names = {each.target.name for each in contents if isinstance(each, Create)}
    assert names == {each["digest"] for each in page.object["spec"]["items"]}
    assert page.object["metadata"]["annotations"] == {CUT_SEQUENCE: "5"}
    assert page.object["spec"]["causes"][0]["manager"] == "kubectl"


def test_what_a_revision_names_already_is_not_written_again() -> None:
    known = frozenset(observed().state.contents)
    plan = decide_cut(observed(known=known))
    assert (plan.contents, len(plan)) == (0, 1)


def test_an_earlier_revision_is_marked_as_cut_again() -> None:
    [page] = pages(manifest({"a": b"1"}), 1)
    manual = Settle(manual=True, asked="friday")
    (action,) = decide_cut(observed(numbered=Numbered(1, 5, page, True), settle=manual))
    assert isinstance(action, Patch)
    assert action.target.name == "web-1"
    notes = action.patch["metadata"]["annotations"]
    assert notes == {CUT_SEQUENCE: "5", CUT: "friday"}
