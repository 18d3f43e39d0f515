"""Edits that are offered do what they are offered for, and nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref, location_ref
from skerry.api.kcp.resources import workspace_ref
from skerry.api.objects import Object
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.edits import AnyEdit, Edit, StrategyEdit, relabelled
from skerry.logic.fleet.placement.explain import explain
from skerry.logic.fleet.placement.records import location_of, placement_of, sync_target_of
from skerry.scheduler.placement import location_chooser
from tests.kit.chain import building
from tests.kit.chain.building import equal

HERE, THERE = edge_placement_ref("wmw", "p"), location_ref("imw", "l")


def table(*selectors: Object, **spec: Any) -> DestinationTable:
    index = DestinationTable(location_chooser)
    index.put_placement(placement_of(building.placement("p", *selectors, **spec)))
    return index


def located(index: DestinationTable, name: str, labels: Object, **more: Any) -> None:
    """Put a Location with a SyncTarget of its own."""
    put_location(index, name, labels, **more)
    index.put_sync_target(sync_target_of(building.sync_target(name, {"id": name})))


def put_location(index: DestinationTable, name: str, labels: Object, **more: Any) -> None:
    index.put_location(location_of(building.location(name, labels, equal(id=name), **more)))


def offered(index: DestinationTable) -> AnyEdit | None:
    return explain(index, HERE, THERE).edit


def test_a_location_that_a_number_passes_over_is_not_relabelled_but_asked_for() -> None:
    index = table(equal(env="prod"), strategy={"numberOfLocations": 1})
    for name in ("a", "b", "l"):
        located(index, name, {"env": "prod"})
    explained = explain(index, HERE, THERE)
    assert (explained.selected, explained.placed) == (True, False)
    assert str(explained.edit) == (
        "set in spec.strategy of EdgePlacement p: numberOfLocations: 3"
    ), "two are not enough: b comes before l"


def test_a_taint_that_keeps_a_location_out_is_to_be_tolerated() -> None:
    index = table({}, strategy={"numberOfLocations": 1})
    located(index, "l", {}, taints="k=v:NoSchedule,soft:PreferNoSchedule")
    assert str(offered(index)) == (
        "add to spec.strategy of EdgePlacement p: "
        "tolerations: [{key: k, operator: Equal, value: v, effect: NoSchedule}]"
    )
    located(index, "a", {})
    assert str(offered(index)) == (
        "add to spec.strategy of EdgePlacement p: numberOfLocations: 2, "
        "tolerations: [{key: k, operator: Equal, value: v, effect: NoSchedule}]"
    )


def test_where_only_ready_edges_are_taken_no_edit_makes_one_ready() -> None:
    index = table({}, strategy={"onlyReady": True})
    located(index, "l", {})
    assert offered(index) is None


def test_no_sync_target_is_taken_from_another_location_of_the_placement() -> None:
    index = table({})
    located(index, "a", {})
    put_location(index, "l", {})
    assert offered(index) is None, "with id=l it would be an instance of a no longer"
    index.put_sync_target(sync_target_of(building.sync_target("spare", {"id": "z"})))
    assert str(offered(index)) == "label SyncTarget spare: id=l"


def test_labels_that_match_are_not_offered_where_a_number_is_full() -> None:
    index = table(equal(env="prod"), strategy={"numberOfLocations": 1})
    located(index, "a", {"env": "prod"})
    located(index, "l", {"env": "dev"})
    assert offered(index) is None


def test_a_workspace_is_called_by_its_path() -> None:
    index = table({}, locationWorkspaceSelector=equal(org="x"))
    located(index, "l", {})
    index.put_workspace("imw", {}, workspace_ref("root", "inventory"))
    assert str(offered(index)) == "label Workspace root:inventory: org=x"


LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from("xy"), max_size=2)
NUMBERS = st.none() | st.integers(1, 3)


@given(
    st.lists(LABELS.map(lambda found: equal(**found)), min_size=1, max_size=2),
    st.lists(LABELS, min_size=2, max_size=4),
    NUMBERS,
    st.booleans(),
)
def test_an_edit_that_is_offered_works_and_takes_nothing_away(
    selectors: list[Object], places: list[dict[str, str]], number: int | None, tainted: bool
) -> None:
    strategy = {} if number is None else {"strategy": {"numberOfLocations": number}}
    index = table(*selectors, **strategy)
    located(index, "l", places[0], taints="k=v:NoSchedule" if tainted else "")
    for count, labels in enumerate(places[1:]):
        located(index, f"other-{count}", labels)
    before, answer = set(index.destinations(HERE)), explain(index, HERE, THERE)
    edit = answer.edit
    if edit is None:
        return
    placement = index.placement(HERE)
    assert placement is not None
    if isinstance(edit, StrategyEdit):
        spec: Object = {"numberOfLocations": edit.number or number}
        spec["tolerations"] = [each._asdict() for each in edit.tolerations]
        changed = building.placement("p", *selectors, strategy=spec)
        index.put_placement(placement_of(changed))
    else:
        assert isinstance(edit, Edit)
        changed_labels = relabelled(places[0], edit.labels)
        put_location(index, "l", changed_labels, taints="k=v:NoSchedule" if tainted else "")
    after = set(index.destinations(HERE))
    assert explain(index, HERE, THERE).placed != answer.placed
    assert {each for each in before if each.location != "l"} <= after
