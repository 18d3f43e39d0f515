"""What an edit would do, found without making it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref, location_ref
from skerry.api.kinds import ResourceInfo
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.explanation.changes import (
    Comparison,
    PlacementChange,
    Workload,
    changed_by,
    edited,
    must_exist,
    placed_at,
    what_or_none,
)
from skerry.logic.fleet.explanation.contents import Materials
from skerry.logic.fleet.explanation.text import changes_text
from skerry.logic.fleet.placement.records import Destination, Location, Placement
from skerry.logic.fleet.placement.whatif import Difference, Put, Remove
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.selected import NamedObjects, What
from skerry.logic.machinery.selectors import Selector

Raw = dict[str, Any]
SHOP, BANK = (ObjectRef("", *NAMESPACES, "", name) for name in ("shop", "bank"))
WEB = ObjectRef("", "apps", "deployments", "shop", "web")
LOOT = ObjectRef("", "", "configmaps", "bank", "loot")
GOING = What(Selector.parse("go=yes"))
FLORIN = Destination("imw", "florin", "st", "u1")


def _object(item: ObjectRef, labels: dict[str, str] | None = None, **more: Any) -> Raw:
    metadata: Raw = {"name": item.name, "labels": labels or {}}
    if item.namespace:
        metadata["namespace"] = item.namespace
    return {"metadata": metadata, **more}


def _workload(placements: dict[str, What | None], **labels: dict[str, str]) -> Workload:
    """A workspace with namespaces shop and bank, and something in each."""
    spaces = {SHOP: labels.get("shop", {"go": "yes"}), BANK: labels.get("bank", {"go": "no"})}
    objects = {item: _object(item, found) for item, found in spaces.items()}
    objects |= {item: _object(item) for item in (WEB, LOOT)}
    return Workload(placements, Materials(objects))


def changes(
    cluster: str, before: Workload, after: Workload, moved: list[Difference]
) -> list[PlacementChange]:
    return Comparison(cluster, before, after, moved).changes()


def test_labelling_a_namespace_brings_what_is_in_it() -> None:
    before = _workload({"p": GOING})
    after = before.with_object(BANK, _object(BANK, {"go": "yes"}))
    (found,) = changes("wmw", before, after, [])
    assert found == PlacementChange(edge_placement_ref("wmw", "p"), objects_added=(LOOT, BANK))


def test_a_namespace_that_goes_takes_along_what_is_in_it() -> None:
    before = _workload({"p": GOING})
    (found,) = changes("wmw", before, before.without_object(SHOP), [])
    assert found.objects_removed == (SHOP, WEB)


def test_a_new_placement_adds_everything_it_selects_and_where_it_goes() -> None:
    before = _workload({})
    ref = edge_placement_ref("wmw", "p")
    moved = Difference(ref, (FLORIN,), ())
    (found,) = changes("wmw", before, before.with_placement("p", GOING), [moved])
    assert found.objects_added == (SHOP, WEB)
    assert found.destinations_added == (FLORIN,)
    assert changes_text([found]).splitlines() == [
        "EdgePlacement p in wmw",
        "  + destination florin by st  imw",
        "  + object namespaces shop",
        "  + object deployments.apps shop/web",
    ]
    (gone,) = changes("wmw", before.with_placement("p", GOING), before, [])
    assert gone.objects_removed == (SHOP, WEB)


def test_placements_of_other_workspaces_are_reported_by_their_destinations() -> None:
    other = edge_placement_ref("elsewhere", "q")
    workload = _workload({"p": GOING})
    (found,) = changes("wmw", workload, workload, [Difference(other, (), (FLORIN,))])
    assert found == PlacementChange(other, destinations_removed=(FLORIN,))
    assert found.as_json(lambda cluster: f"root:{cluster}")["destinations"]["removed"] == [
        {"workspace": "root:imw", "location": "florin", "syncTarget": "st"}
    ]


def test_nothing_is_reported_when_nothing_would_change() -> None:
    workload = _workload({"p": GOING})
    assert changes("wmw", workload, workload, []) == []
    assert changes_text([]) == "nothing would change\n"


def test_a_document_of_metadata_alone_is_a_label_change() -> None:
    live = {
        "metadata": {"name": "florin", "uid": "u", "labels": {"env": "dev", "old": "x"}},
        "spec": {"instanceSelector": {}},
    }
    document = {"metadata": {"name": "florin", "labels": {"env": "prod", "old": None}}}
    after = edited(live, document)
    assert after["metadata"]["labels"] == {"env": "prod"}
    assert after["spec"] == live["spec"]


def test_a_whole_document_replaces_content_and_labels_and_keeps_identity() -> None:
    live = {
        "metadata": {
            "name": "florin",
            "uid": "u",
            "labels": {"env": "dev"},
            "annotations": {"kcp.io/cluster": "imw"},
        },
        "spec": {"instanceSelector": {"matchLabels": {"id": "florin"}}},
        "status": {"instances": 1},
    }
    document = {"metadata": {"name": "florin"}, "spec": {"instanceSelector": {}}}
    after = edited(live, document)
    assert after["spec"] == {"instanceSelector": {}}
    assert "labels" not in after["metadata"]
    assert after["metadata"]["uid"] == "u"
    assert after["metadata"]["annotations"] == {"kcp.io/cluster": "imw"}
    assert edited(None, document) == document


labels = st.dictionaries(st.just("go"), st.sampled_from(["yes", "no"]))


@given(labels, labels, labels)
@settings(max_examples=60, deadline=None)
def test_making_the_change_backwards_reports_the_opposite(
    shop: dict[str, str], bank: dict[str, str], then: dict[str, str]
) -> None:
    before = _workload({"p": GOING}, shop=shop, bank=bank)
    after = before.with_object(SHOP, _object(SHOP, then))
    there = changes("c", before, after, [])
    back = changes("c", after, before, [])
    assert [each.objects_added for each in there] == [each.objects_removed for each in back]
    assert [each.objects_removed for each in there] == [each.objects_added for each in back]


GUILDER = Destination("imw", "guilder", "st", "u2")
DEPLOYMENTS = ResourceInfo("apps", "v1", "deployments", "Deployment", True)
CUSTOMIZING = ResourceInfo("edge.kcp.io", "v1alpha1", "customizers", "Customizer", True)


def _compared(before: Workload, after: Workload, *moved: Difference) -> PlacementChange:
    going = [FLORIN, GUILDER]
    (found,) = Comparison("wmw", before, after, moved, lambda _: going).changes()
    return found


def test_an_edit_of_content_counts_every_destination() -> None:
    before = _workload({"p": GOING}).with_object(WEB, _object(WEB, spec={"replicas": 2}))
    after, moved = changed_by(before, DEPLOYMENTS, _object(WEB, spec={"replicas": 3}), delete=False)
    assert moved == []
    found = _compared(before, after)
    assert changes_text([found]).splitlines() == [
        "EdgePlacement p in wmw",
        "  ~ object deployments.apps shop/web at 2 destinations: florin, guilder",
        "      spec.replicas: 2 → 3",
    ]


def test_an_edit_of_a_customizer_is_seen_in_what_it_customizes_place_by_place() -> None:
    notes = {"edge.kcp.io/customizer": "c"}
    web = _object(WEB, spec={"replicas": 2})
    web["metadata"]["annotations"] = notes
    locations = {
        FLORIN.location_ref: {"metadata": {"name": "florin", "labels": {"n": "5"}}},
        GUILDER.location_ref: {"metadata": {"name": "guilder", "labels": {}}},
    }
    before = _workload({"p": GOING}).with_object(WEB, web)
    before = before.with_customizer(CustomizerName("shop", "c"), {"metadata": {}})
    for ref, obj in locations.items():
        before = before.with_location(ref, obj)
    customizer = {
        "metadata": {
            "name": "c",
            "namespace": "shop",
            "annotations": {"edge.kcp.io/expand-parameters": "true"},
        },
        "replacements": [{"path": "$.spec.replicas", "value": "%(n)"}],
    }
    after, _ = changed_by(before, CUSTOMIZING, customizer, delete=False)
    found = _compared(before, after)
    assert [(each.fields, each.destinations) for each in found.contents] == [
        (("spec.replicas: 2 → 5",), (FLORIN,))
    ]
    (lost,) = found.withheld
    assert (lost.item, lost.problem.reason, lost.destinations) == (
        WEB,
        "MissingParameter",
        (GUILDER,),
    )
    assert "  ! withheld: object deployments.apps shop/web at 1 destination: guilder" in (
        changes_text([found])
    )


def test_an_added_destination_says_what_goes_there_and_what_would_be_withheld() -> None:
    before = _workload({"p": GOING})
    web = _object(WEB)
    web["metadata"]["annotations"] = {"edge.kcp.io/customizer": "lost"}
    before = before.with_object(WEB, web)
    ref = edge_placement_ref("wmw", "p")
    found = _compared(before, before, Difference(ref, (GUILDER,), ()))
    assert found.arriving == (SHOP, WEB)
    assert [(each.item, each.problem.reason) for each in found.withheld] == [
        (WEB, "CustomizerNotFound")
    ]
    assert "  > goes there too: object namespaces shop" in changes_text([found])


def test_a_name_that_another_workspace_has_there_is_foreseen() -> None:
    before = _workload({"p": GOING})
    ref = edge_placement_ref("wmw", "p")
    comparison = Comparison(
        "wmw",
        before,
        before,
        [Difference(ref, (GUILDER,), ())],
        lambda _: [FLORIN, GUILDER],
        lambda where, item: "root:first" if (where, item) == (GUILDER, WEB) else None,
    )
    assert [there for there, _ in comparison.arriving()] == [GUILDER]
    (found,) = comparison.changes()
    (lost,) = found.withheld
    assert lost.problem.reason == "NameTaken"
    assert "root:first" in lost.problem.message


def test_labels_of_a_namespace_are_content_only_where_it_is_named() -> None:
    before = _workload({"p": GOING})
    after = before.with_object(SHOP, _object(SHOP, {"go": "yes", "team": "red"}))
    assert changes("wmw", before, after, []) == []
    named = NamedObjects("", frozenset(["namespaces"]), frozenset(["shop"]), ())
    what = What(Selector.parse("go=yes"), (named,))
    found = _compared(before.with_placement("p", what), after.with_placement("p", what))
    assert found.contents[0].fields == ("metadata.labels.team: added red",)


def test_metadata_alone_is_about_what_exists_where_placement_needs_a_content() -> None:
    locations = ResourceInfo("scheduling.kcp.io", "v1alpha1", "locations", "Location", False)
    spaces = ResourceInfo("", "v1", "namespaces", "Namespace", False)
    document = {"metadata": {"name": "x"}}
    assert must_exist(locations, document)
    assert not must_exist(locations, {**document, "spec": {}})
    assert not must_exist(spaces, document)
    assert changes_text([], str, ["Namespace 'x'"]) == (
        "+ new Namespace 'x'\nnothing else would change\n"
    )


DEPLOYMENTS = ResourceInfo("apps", "v1", "deployments", "Deployment", True)
PLACEMENTS = ResourceInfo("edge.kcp.io", "v1alpha1", "edgeplacements", "EdgePlacement", False)
LOCATIONS = ResourceInfo("scheduling.kcp.io", "v1alpha1", "locations", "Location", False)
CUSTOMIZERS = ResourceInfo("edge.kcp.io", "v1alpha1", "customizers", "Customizer", True)


def test_a_document_of_workload_is_put_among_the_objects_and_moves_nothing() -> None:
    document = {"metadata": {"name": "new"}, "spec": {}}
    item = ObjectRef("", "apps", "deployments", "default", "new")
    after, moved = changed_by(_workload({}), DEPLOYMENTS, document, delete=False)
    assert moved == []
    assert after.materials.objects[item] == document
    gone, moved = changed_by(after, DEPLOYMENTS, document, delete=True)
    assert moved == []
    assert item not in gone.materials.objects


def test_deleting_a_namespace_takes_along_what_is_in_it() -> None:
    spaces = ResourceInfo("", "v1", "namespaces", "Namespace", False)
    after, _ = changed_by(_workload({}), spaces, {"metadata": {"name": "shop"}}, delete=True)
    assert set(after.materials.objects) == {BANK, LOOT}


def test_a_placement_is_read_and_moves_destinations_and_goes_with_its_meaning() -> None:
    placement = placed_at(
        {"metadata": {"name": "p"},
         "spec": {"locationSelectors": [{}],
                  "namespaceSelector": {"matchLabels": {"go": "yes"}}}}, "wmw"
    )  # fmt: skip
    after, [put] = changed_by(_workload({}), PLACEMENTS, placement, delete=False)
    assert after.placements["p"] == what_or_none(placement)
    assert isinstance(put, Put)
    assert isinstance(put.record, Placement)
    gone, moved = changed_by(after, PLACEMENTS, placement, delete=True)
    assert "p" not in gone.placements
    assert moved == [Remove(Placement, edge_placement_ref("wmw", "p"))]


def test_a_placement_whose_selector_is_malformed_is_there_and_means_nothing() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    placement = placed_at({"metadata": {"name": "p"}, "spec": {"namespaceSelector": wrong}}, "wmw")
    after, _ = changed_by(_workload({"p": GOING}), PLACEMENTS, placement, delete=False)
    assert after.placements == {"p": None}


def test_a_location_moves_destinations_and_is_what_contents_are_expanded_for() -> None:
    oslo = placed_at({"metadata": {"name": "oslo", "labels": {"a": "b"}}, "spec": {}}, "imw")
    ref = location_ref("imw", "oslo")
    after, [put] = changed_by(_workload({}), LOCATIONS, oslo, delete=False)
    assert isinstance(put, Put)
    assert after.materials.locations[ref] == oslo
    gone, moved = changed_by(after, LOCATIONS, oslo, delete=True)
    assert moved == [Remove(Location, ref)]
    assert gone.materials.locations.get(ref) is None


def test_a_customizer_comes_and_goes_under_its_namespace() -> None:
    document = {"metadata": {"name": "eu", "namespace": "shop"}, "replacements": []}
    name = CustomizerName("shop", "eu")
    after, moved = changed_by(_workload({}), CUSTOMIZERS, document, delete=False)
    assert moved == []
    assert after.materials.customizers == {name: document}
    gone, _ = changed_by(after, CUSTOMIZERS, document, delete=True)
    assert gone.materials.customizers == {}


def test_what_does_not_exist_yet_gets_the_identity_that_a_server_would_give_it() -> None:
    made = placed_at({"metadata": {"name": "p", "annotations": {"a": "b"}}}, "wmw")
    assert made["metadata"]["uid"]
    assert made["metadata"]["annotations"] == {"a": "b", "kcp.io/cluster": "wmw"}
    known = placed_at({"metadata": {"name": "p", "uid": "u"}}, "wmw")
    assert known["metadata"]["uid"] == "u"
