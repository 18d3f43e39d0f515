"""What an edit would do, found without making it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.explanation.changes import PlacementChange, Workload, changes, edited
from skerry.logic.fleet.explanation.text import changes_text
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.whatif import Difference
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.selected import What
from skerry.logic.machinery.selectors import Selector

SHOP, BANK = (ObjectRef("", *NAMESPACES, "", name) for name in ("shop", "bank"))
WEB = ObjectRef("", "apps", "deployments", "shop", "web")
LOOT = ObjectRef("", "", "configmaps", "bank", "loot")
GOING = What(Selector.parse("go=yes"))
ITEMS = {SHOP: {"go": "yes"}, BANK: {"go": "no"}, WEB: {}, LOOT: {}}
FLORIN = Destination("imw", "florin", "st", "u1")


def test_labelling_a_namespace_brings_what_is_in_it() -> None:
    before = Workload({"p": GOING}, ITEMS)
    after = before.with_item(BANK, {"go": "yes"})
    (found,) = changes("wmw", before, after, [])
    assert found == PlacementChange(edge_placement_ref("wmw", "p"), objects_added=(LOOT, BANK))


def test_a_namespace_that_goes_takes_along_what_is_in_it() -> None:
    before = Workload({"p": GOING}, ITEMS)
    (found,) = changes("wmw", before, before.without_item(SHOP), [])
    assert found.objects_removed == (SHOP, WEB)


def test_a_new_placement_adds_everything_it_selects_and_where_it_goes() -> None:
    before = Workload({}, ITEMS)
    ref = edge_placement_ref("wmw", "p")
    moved = Difference(ref, (FLORIN,), ())
    (found,) = changes("wmw", before, before.with_placement("p", GOING), [moved])
    assert found.objects_added == (SHOP, WEB)
    assert found.destinations_added == (FLORIN,)
    assert changes_text([found]).splitlines() == [
        "EdgePlacement p in wmw",
        "  + destination florin by st (imw)",
        "  + object namespaces shop",
        "  + object deployments.apps shop/web",
    ]
    (gone,) = changes("wmw", before.with_placement("p", GOING), before, [])
    assert gone.objects_removed == (SHOP, WEB)


def test_placements_of_other_workspaces_are_reported_by_their_destinations() -> None:
    other = edge_placement_ref("elsewhere", "q")
    workload = Workload({"p": GOING}, ITEMS)
    (found,) = changes("wmw", workload, workload, [Difference(other, (), (FLORIN,))])
    assert found == PlacementChange(other, destinations_removed=(FLORIN,))
    assert found.as_json()["destinations"]["removed"][0]["locationName"] == "florin"


def test_nothing_is_reported_when_nothing_would_change() -> None:
    workload = Workload({"p": GOING}, ITEMS)
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
    before = Workload({"p": GOING}, {SHOP: shop, BANK: bank, WEB: {}, LOOT: {}})
    after = before.with_item(SHOP, then)
    there = changes("c", before, after, [])
    back = changes("c", after, before, [])
    assert [each.objects_added for each in there] == [each.objects_removed for each in back]
    assert [each.objects_removed for each in there] == [each.objects_added for each in back]
