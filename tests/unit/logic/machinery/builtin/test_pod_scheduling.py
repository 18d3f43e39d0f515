"""What a pod asks of the scheduler, judged branch by branch."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.pod_scheduling import (
    node_selector_errors,
    node_term_errors,
    scheduling_errors,
    toleration_errors,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM: Object = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
SPREAD: Object = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def of(**spec: Any) -> list[str]:
    return [str(error) for error in scheduling_errors(spec, "s")]


def fields(texts: list[str]) -> list[str]:
    return [text.split(": ")[0] for text in texts]


def test_a_pod_that_asks_for_nothing_has_nothing_wrong() -> None:
    assert of() == of(affinity={}, schedulingGates=[], tolerations=None) == []


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ({"operator": "In", "values": ["a"]}, []),
        ({"operator": "In"}, ["values"]),
        ({"operator": "NotIn", "values": []}, ["values"]),
        ({"operator": "Exists"}, []),
        ({"operator": "Exists", "values": ["a"]}, ["values"]),
        ({"operator": "DoesNotExist"}, []),
        ({"operator": "Gt", "values": ["1"]}, []),
        ({"operator": "Gt", "values": ["1", "2"]}, ["values"]),
        ({"operator": "Lt"}, ["values"]),
        ({"operator": "Like", "values": ["a"]}, ["operator"]),
        ({"operator": "Exists", "key": ""}, ["key"]),
    ],
)
def test_an_expression_has_as_many_values_as_its_operator_wants(
    expression: Object, wrong: list[str]
) -> None:
    term = {"matchExpressions": [{"key": "zone", **expression}]}
    found = [error.field for error in node_term_errors(term, "t")]
    assert found[: len(wrong)] == [f"t.matchExpressions[0].{name}" for name in wrong]
    assert bool(found) == bool(wrong)


@pytest.mark.parametrize(
    ("item", "wrong"),
    [
        ({"operator": "In", "values": ["node-1"]}, []),
        ({"operator": "Exists"}, ["operator"]),
        ({"operator": "In", "values": ["a", "b"]}, ["values"]),
        ({"operator": "NotIn", "values": ["UP"]}, ["values[0]"]),
        ({"operator": "In", "values": ["a"], "key": "metadata.uid"}, ["key"]),
    ],
)
def test_of_the_fields_of_a_node_only_its_name_selects(item: Object, wrong: list[str]) -> None:
    term = {"matchFields": [{"key": "metadata.name", **item}]}
    found = [error.field for error in node_term_errors(term, "t")]
    assert found == [f"t.matchFields[0].{name}" for name in wrong]


def test_a_node_selector_has_a_term() -> None:
    (error,) = node_selector_errors({}, "n")
    assert str(error) == (
        "n.nodeSelectorTerms: Required value: must have at least one node selector term"
    )
    assert node_selector_errors({"nodeSelectorTerms": [{}]}, "n") == []


@pytest.mark.parametrize(("weight", "good"), [(0, False), (1, True), (100, True), (101, False)])
def test_a_preference_weighs_one_to_a_hundred(weight: int, good: bool) -> None:
    node = {"nodeAffinity": {PREFERRED: [{"weight": weight, "preference": {}}]}}
    pod = {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": TERM}]}}
    assert (of(affinity=node) == []) is good
    assert (of(affinity=pod) == []) is good


def test_required_terms_of_nodes_and_pods_are_judged() -> None:
    assert fields(of(affinity={"nodeAffinity": {REQUIRED: {}}})) == [
        f"s.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    ]
    found = fields(of(affinity={"podAntiAffinity": {REQUIRED: [{"labelSelector": {}}]}}))
    assert found[0] == f"s.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"namespaces": ["UP"]}, "namespace"),
        ({"namespaceSelector": {"matchLabels": {"a b": "c"}}}, "namespaceSelector.matchLabels"),
        ({"matchLabelKeys": ["a b"]}, "matchLabelKeys[0]"),
        ({"matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}, "matchLabelKeys[0]"),
        ({"mismatchLabelKeys": ["a"], "labelSelector": None}, "mismatchLabelKeys"),
    ],
)
def test_a_term_about_pods_is_well_formed(change: Object, field: str) -> None:
    found = fields(of(affinity={"podAffinity": {REQUIRED: [{**TERM, **change}]}}))
    assert found == [f"s.affinity.podAffinity.{REQUIRED}[0].{field}"]


def test_gates_have_names_of_their_own() -> None:
    assert of(schedulingGates=[{"name": "a.com/x"}, {"name": "a.com/y"}]) == []
    assert of(schedulingGates=[{"name": "x"}, {"name": "x"}]) == [
        's.schedulingGates[1]: Duplicate value: "x"'
    ]
    assert fields(of(schedulingGates=[{}]))[0] == "s.schedulingGates[0]"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"maxSkew": 0}, "maxSkew"),
        ({"topologyKey": ""}, "topologyKey"),
        ({"whenUnsatisfiable": "Whatever"}, "whenUnsatisfiable"),
        ({"minDomains": 0}, "minDomains"),
        ({"minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"}, "minDomains"),
        ({"nodeAffinityPolicy": "Maybe"}, "nodeAffinityPolicy"),
        ({"nodeTaintsPolicy": "Maybe"}, "nodeTaintsPolicy"),
        ({"matchLabelKeys": ["a"]}, "matchLabelKeys"),
        (
            {"matchLabelKeys": ["a"], "labelSelector": {"matchLabels": {"a": "b"}}},
            "matchLabelKeys[0]",
        ),
        (
            {
                "matchLabelKeys": ["a"],
                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            },
            "matchLabelKeys[0]",
        ),
        ({"labelSelector": {"matchLabels": {"a b": "c"}}}, "labelSelector.matchLabels"),
    ],
)
def test_a_spread_is_well_formed(change: Object, field: str) -> None:
    found = fields(of(topologySpreadConstraints=[{**SPREAD, **change}]))
    assert found == [f"s.topologySpreadConstraints[0].{field}"]


def test_equal_spreads_are_reported_at_the_first() -> None:
    other = {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}
    assert of(topologySpreadConstraints=[SPREAD, other]) == []
    assert of(topologySpreadConstraints=[SPREAD, other, SPREAD]) == [
        (
            "s.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
            '"{zone, DoNotSchedule}"'
        )
    ]


@pytest.mark.parametrize(
    ("toleration", "field"),
    [
        ({"key": "a", "operator": "Exists"}, ""),
        ({"key": "a", "value": "b"}, ""),
        ({"operator": "Exists"}, ""),
        ({}, "operator"),
        ({"key": "a b", "operator": "Exists"}, "key"),
        ({"key": "a", "operator": "Exists", "value": "b"}, "operator"),
        ({"key": "a", "operator": "Like"}, "operator"),
        ({"key": "a", "value": "b c"}, "operator"),
        ({"key": "a", "effect": "Whatever"}, "effect"),
        ({"key": "a", "tolerationSeconds": 1}, "effect"),
        ({"key": "a", "tolerationSeconds": 1, "effect": "NoSchedule"}, "effect"),
        ({"key": "a", "tolerationSeconds": 1, "effect": "NoExecute"}, ""),
    ],
)
def test_a_toleration_says_what_it_tolerates(toleration: Object, field: str) -> None:
    found = [error.field for error in toleration_errors([toleration], "t")]
    assert found == [f"t[0].{field}"] * bool(field)
