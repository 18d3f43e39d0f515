"""Explanations are true, and the edits they offer work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref, location_ref
from skerry.api.kcp.resources import workspace_ref
from skerry.api.objects import Object
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.edits import Edit, joining_edits, relabelled
from skerry.logic.fleet.placement.explain import explain, is_selected
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import location_of, placement_of, sync_target_of
from skerry.logic.fleet.placement.terms import matches, read_selector
from skerry.scheduler.placement import location_chooser
from tests.kit.chain import building
from tests.kit.chain.building import equal, expression

HERE, THERE = edge_placement_ref("wmw", "p"), location_ref("imw", "l")


def index_of(
    *selectors: Object,
    labels: dict[str, str] | None = None,
    instances: Object | None = None,
    target: dict[str, str] | None = None,
    taints: str = "",
    **spec: Any,
) -> DestinationTable:
    index = DestinationTable(location_chooser)
    index.put_placement(placement_of(building.placement("p", *selectors, **spec)))
    index.put_location(location_of(building.location("l", labels, instances, taints=taints)))
    if target is not None:
        index.put_sync_target(sync_target_of(building.sync_target("t", target)))
    return index


@given(st.lists(building.selectors, min_size=1, max_size=3), building.labels)
def test_the_edit_turns_the_answer_around(selectors: list[Object], labels: dict[str, str]) -> None:
    index = index_of(*selectors, labels=labels, instances={}, target={})
    before = explain(index, HERE, THERE)
    assert before.placed == bool(index.destinations(HERE))
    if before.edit is None:
        return
    assert isinstance(before.edit, Edit)
    assert before.edit.subject == "Location"
    changed = relabelled(labels, before.edit.labels)
    index.put_location(location_of(building.location("l", changed, {})))
    assert explain(index, HERE, THERE).placed != before.placed


@given(building.selectors, building.labels)
def test_no_smaller_edit_joins(selector: Object, labels: dict[str, str]) -> None:
    terms = read_selector(selector, "").terms
    assert terms is not None
    edits = joining_edits(terms, labels)
    if edits is None:
        assert any(term.impossible for _, term in terms)
        return
    wrong = [key for key, term in terms if not term.admits(labels.get(key))]
    assert sorted(key for key, _ in edits) == sorted(wrong), "each failing key must change"
    assert matches(terms, relabelled(labels, edits))


def test_each_failing_term_is_named_with_what_was_seen() -> None:
    index = index_of(equal(env="prod", tier="a"), labels={"env": "dev"}, instances={}, target={})
    explained = explain(index, HERE, THERE)
    assert not explained.selected
    assert explained.reasons == (
        "locationSelectors[0]: label 'env' must satisfy 'in (prod)'; it is 'dev'",
        "locationSelectors[0]: label 'tier' must satisfy 'in (a)'; it is absent",
    )
    assert str(explained.edit) == "label Location l: env=prod tier=a"


def test_of_several_selectors_the_nearest_is_offered() -> None:
    index = index_of(
        equal(env="prod", tier="a"), equal(region="north"), labels={}, instances={}, target={}
    )
    assert str(explain(index, HERE, THERE).edit) == "label Location l: region=north"


def test_a_destination_is_left_by_removing_what_binds_it() -> None:
    index = index_of(equal(env="prod"), labels={"env": "prod"}, instances={}, target={})
    explained = explain(index, HERE, THERE)
    assert explained.placed
    assert explained.sync_targets == ("t",)
    assert str(explained.edit) == "label Location l: env-"


def test_nothing_leaves_an_empty_selector() -> None:
    explained = explain(index_of({}, labels={"env": "x"}, instances={}, target={}), HERE, THERE)
    assert explained.placed
    assert explained.edit is None


def test_a_workspace_that_does_not_match_is_reported_with_its_edit() -> None:
    index = index_of(
        {}, labels={}, instances={}, target={}, locationWorkspaceSelector=equal(org="x")
    )
    explained = explain(index, HERE, THERE)
    assert not explained.selected
    assert explained.reasons == (
        "locationWorkspaceSelector: label 'org' must satisfy 'in (x)'; it is absent",
    )
    assert str(explained.edit) == "label Workspace imw: org=x"
    index.put_workspace("imw", {"org": "x"})
    assert explain(index, HERE, THERE).placed


def test_a_location_without_instances_says_what_its_sync_targets_lack() -> None:
    index = index_of({}, labels={}, instances=equal(id="l"), target={"id": "other"})
    explained = explain(index, HERE, THERE)
    assert (explained.selected, explained.placed) == (True, False)
    assert explained.reasons == (
        "SyncTarget t: instanceSelector: label 'id' must satisfy 'in (l)'; it is 'other'",
    )
    assert str(explained.edit) == "label SyncTarget t: id=l"


@pytest.mark.parametrize(
    ("instances", "target", "reason"),
    [
        (None, {}, "Location l has no instanceSelector, which matches nothing"),
        ({}, None, "there is no SyncTarget in the Location's workspace"),
        (expression("k", "In"), {}, "Location l: spec.instanceSelector"),
    ],
)
def test_why_there_are_no_instances(
    instances: Object | None, target: dict[str, str] | None, reason: str
) -> None:
    explained = explain(index_of({}, labels={}, instances=instances, target=target), HERE, THERE)
    assert explained.reasons[0].startswith(reason)
    assert explained.edit is None


def test_an_invalid_selector_is_the_whole_answer() -> None:
    explained = explain(index_of(expression("k", "In"), labels={}), HERE, THERE)
    assert explained.reasons[0].startswith("invalid selector: spec.locationSelectors[0]")


def test_a_placement_without_selectors_says_so() -> None:
    explained = explain(index_of(labels={}, instances={}, target={}), HERE, THERE)
    assert explained.reasons == ("spec.locationSelectors is empty, which selects nothing",)
    assert explained.edit is None


@pytest.mark.parametrize(
    ("strategy", "taints", "reason"),
    [
        ({"onlyReady": True}, "", "strategy: LocationReady: location(s) had no ready"),
        (
            {"numberOfLocations": 5},
            "k=v:NoSchedule",
            "strategy: LocationTaints: location(s) had untolerated taint {k=v:NoSchedule}",
        ),
    ],
)
def test_what_a_strategy_passes_over_is_reported(
    strategy: Object, taints: str, reason: str
) -> None:
    index = index_of({}, labels={}, instances={}, target={}, taints=taints, strategy=strategy)
    explained = explain(index, HERE, THERE)
    assert (explained.selected, explained.chosen) == (True, False)
    assert explained.reasons[0].startswith(reason)


def test_others_chosen_in_its_stead_are_reported() -> None:
    index = index_of({}, labels={}, instances={}, target={}, strategy={"numberOfLocations": 1})
    index.put_location(location_of(building.location("first", {}, {})))
    explained = explain(index, HERE, THERE)
    assert explained.reasons == ("strategy: 1 other locations were chosen",)


def test_what_is_not_there_cannot_be_explained() -> None:
    index = index_of({}, labels={})
    with pytest.raises(LookupError, match=r"no EdgePlacement wmw\|q"):
        explain(index, edge_placement_ref("wmw", "q"), THERE)
    with pytest.raises(LookupError, match=r"no Location imw\|q"):
        explain(index, HERE, location_ref("imw", "q"))


def granted(index: DestinationTable, name: str, **spec: Any) -> None:
    index.put_workspace("imw", {}, workspace_ref("root", "imw"))
    index.put_workspace("wmw", {}, workspace_ref("root", "wmw"))
    index.put_grant(grant_of(building.grant(name, **spec)))


def test_a_location_that_refuses_names_the_grant_by_the_path_of_its_workspace() -> None:
    index = index_of({}, labels={}, instances={}, target={})
    granted(index, "eu-only", paths=["root:other"], selector={})
    found = explain(index, HERE, THERE)
    assert (found.selected, found.chosen, found.refused, found.held) == (True, False, True, False)
    assert found.reasons == ("not granted by root:imw/eu-only",)
    assert found.edit is None


def test_a_location_that_no_grant_is_about_names_the_workspace() -> None:
    index = index_of({}, labels={}, instances={}, target={})
    granted(index, "eu-only", paths=["root:wmw"], names=["elsewhere"])
    assert explain(index, HERE, THERE).reasons == ("not granted by any grant of root:imw",)


def test_what_runs_where_it_is_refused_is_reported_to_be_held() -> None:
    index = index_of({}, labels={}, instances={}, target={})
    granted(index, "eu-only", paths=["root:other"], selector={})
    found = explain(index, HERE, THERE, {THERE})
    assert (found.placed, found.held) == (True, True)
    assert "stays until its removal is confirmed" in found.reasons[1]


def test_a_grant_that_admits_or_only_observes_changes_no_answer() -> None:
    for spec in ({"paths": ["root:wmw"]}, {"mode": "Observe"}):
        index = index_of({}, labels={}, instances={}, target={})
        granted(index, "g", selector={}, **spec)
        found = explain(index, HERE, THERE)
        assert (found.placed, found.refused, found.reasons) == (True, False, ())


@pytest.mark.parametrize(
    ("selectors", "spec", "selected"),
    [
        ([{}], {}, True),
        ([equal(env="dr"), equal(env="prod")], {}, True),
        ([equal(env="dr")], {}, False),
        ([], {}, False),
        ([{}], {"locationWorkspaceSelector": equal(org="a")}, True),
        ([{}], {"locationWorkspaceSelector": equal(org="b")}, False),
        ([{"matchExpressions": [{"key": "a", "operator": "Near"}]}], {}, False),
    ],
)
def test_whether_labels_match_is_known_without_a_reason(
    selectors: list[Object], spec: dict[str, Any], selected: bool
) -> None:
    index = index_of(*selectors, labels={"env": "prod"}, instances={}, target={}, **spec)
    index.put_workspace("imw", {"org": "a"}, workspace_ref("root", "imw"))
    assert is_selected(index, HERE, THERE) is selected
    assert explain(index, HERE, THERE).selected is selected


def test_nothing_is_selected_by_or_of_what_is_not_there() -> None:
    index = index_of({}, labels={}, instances={}, target={})
    assert not is_selected(index, edge_placement_ref("wmw", "q"), THERE)
    assert not is_selected(index, HERE, location_ref("imw", "q"))
