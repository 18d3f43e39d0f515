"""Where placements are by their slices, and the tables that keep that ready."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.explanation.standing import (
    NOWHERE,
    FleetTables,
    content_of,
    standing_of,
    standings_by,
)
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import Assigned
from tests.kit.chain import building

Raw = dict[str, Any]
WEB, SHOP = edge_placement_ref("c", "web"), edge_placement_ref("c", "shop")


def place(number: int, **more: int) -> Raw:
    return {**Destination("i", f"l{number}", f"t{number}", f"u{number}").as_object(), **more}


def piece(name: str, *places: Raw, of: str = "web") -> Raw:
    metadata = {
        "name": name,
        "labels": {"edge.kcp.io/source-placement": of},
        "annotations": {CLUSTER_ANNOTATION: "c"},
    }
    return {"metadata": metadata, "destinations": list(places)}


def test_a_placement_stands_where_all_its_slices_say() -> None:
    found = standing_of([piece("web", place(1, slot=4, revision=2)), piece("web-2", place(2))])
    assert {each.location for each in found.destinations} == {"l1", "l2"}
    assert found.present == {each.location_ref for each in found.destinations}
    assert found.assigned == {"u1": Assigned(4, 2)}


def test_slices_belong_to_the_placement_that_they_name() -> None:
    standing = standings_by([piece("web", place(1)), piece("shop", place(2), of="shop")])
    assert [each.location for each in standing(SHOP).destinations] == ["l2"]
    assert standing(edge_placement_ref("other", "web")) == NOWHERE
    assert standing(WEB) is standing(WEB)


class Kept:
    """Tables, and the slices that they are given."""

    def __init__(self) -> None:
        self.slices: dict[str, Raw] = {}
        self.read = 0
        self.tables = FleetTables(None, self._pieces)

    def _pieces(self, ref: Any) -> list[Raw]:
        self.read += 1
        label = "edge.kcp.io/source-placement"
        return [e for e in self.slices.values() if e["metadata"]["labels"][label] == ref.name]

    def put(self, made: Raw) -> None:
        self.slices[made["metadata"]["name"]] = made
        self.tables.put_slice(made)

    def remove(self, name: str) -> None:
        self.tables.remove_slice(self.slices.pop(name))

    def at(self, ref: Any) -> list[str]:
        return sorted(each.location for each in self.tables.standing(ref).destinations)


def test_what_is_kept_ready_is_read_again_once_a_slice_changes_hands_or_goes() -> None:
    kept = Kept()
    kept.put(piece("web", place(1)))
    assert (kept.at(WEB), kept.at(WEB), kept.read) == (["l1"], ["l1"], 1)
    kept.put(piece("web-2", place(2)))
    assert kept.at(WEB) == ["l1", "l2"]
    assert kept.at(SHOP) == []
    kept.put(piece("web-2", place(2), of="shop"))
    assert (kept.at(WEB), kept.at(SHOP)) == (["l1"], ["l2"])
    kept.remove("web")
    assert kept.at(WEB) == []


def test_few_placements_are_kept_ready() -> None:
    kept = Kept()
    refs = [edge_placement_ref("c", f"p{n}") for n in range(6)]
    for ref in refs:
        kept.tables.standing(ref)
    kept.tables.standing(refs[-1])
    assert kept.read == len(refs)
    kept.tables.standing(refs[0])
    assert kept.read == len(refs) + 1


def test_what_an_inventory_remembers_of_its_grants_is_forgotten_with_it() -> None:
    tables = Kept().tables
    consent = {
        "metadata": {"name": "default", "annotations": {CLUSTER_ANNOTATION: "i"}},
        "mode": "Enforce",
    }
    tables.put_consent({**consent, "metadata": {**consent["metadata"], "name": "other"}})  # type: ignore[dict-item]
    assert not tables.table.consent.is_used
    tables.put_consent(consent)
    assert tables.table.consent.is_used
    tables.remove_consent(consent)
    assert not tables.table.consent.is_used


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["placement", "grant", "workspace"]),
        st.sampled_from(["a", "b"]),
        st.booleans(),
        st.sampled_from([{}, {"env": "prod"}]),
    ),
    max_size=12,
)


@given(ACTIONS)
def test_what_is_kept_up_is_what_reading_everything_at_the_end_gives(
    actions: list[tuple[str, str, bool, dict[str, str]]],
) -> None:
    kept, left = Kept().tables, dict[tuple[str, str], Raw]()
    for kind, name, there, labels in actions:
        if there:
            left[kind, name] = made = made_of(kind, name, labels)
            getattr(kept, f"put_{kind}")(made)
        elif (kind, name) in left:
            getattr(kept, f"remove_{kind}")(left.pop((kind, name)))
    fresh = Kept().tables
    for (kind, _), made in left.items():
        getattr(fresh, f"put_{kind}")(made)
    for name in "ab":
        ref = edge_placement_ref("wmw", name)
        assert kept.table.placement(ref) == fresh.table.placement(ref)
        cluster = f"content-{name}"
        assert kept.table.workspace_labels(cluster) == fresh.table.workspace_labels(cluster)
    assert kept.table.consent.is_used == fresh.table.consent.is_used


def made_of(kind: str, name: str, labels: dict[str, str]) -> Raw:
    """Return an object of a kind; what it says depends on the labels."""
    if kind == "placement":
        return building.placement(name, {"matchLabels": labels})
    if kind == "grant":
        return building.grant(name, paths=["root:org"])
    metadata = {"name": name, "labels": labels, "annotations": {CLUSTER_ANNOTATION: "root"}}
    return {"metadata": metadata, "spec": {"cluster": f"content-{name}"}}


def test_a_workspace_leads_nowhere_before_it_has_a_cluster() -> None:
    assert content_of({"metadata": {"name": "w"}}) == ""
    assert content_of({"spec": {"cluster": "2x"}}) == "2x"
