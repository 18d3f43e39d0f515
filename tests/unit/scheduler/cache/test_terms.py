"""Node selectors and affinity terms: what they mean, and whom."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.scheduler.cache.terms import (
    affinity_term,
    node_requirement,
    node_term,
    preferred_affinity,
    preferred_node_terms,
    required_affinity,
)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def required(*terms: dict[str, Any], **spec: Any) -> dict[str, Any]:
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": chosen}, **spec}


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        ({"matchExpressions": [expression("zone", "In", "a", "b")]}, True),
        ({"matchExpressions": [expression("zone", "NotIn", "a")]}, False),
        ({"matchExpressions": [expression("zone", "Exists")]}, True),
        ({"matchExpressions": [expression("disk", "DoesNotExist")]}, True),
        ({"matchExpressions": [expression("cpus", "Gt", "3")]}, True),
        ({"matchExpressions": [expression("cpus", "Lt", "3")]}, False),
        ({"matchFields": [expression("metadata.name", "In", "n1")]}, True),
        ({"matchFields": [expression("metadata.name", "In", "n2")]}, False),
        (
            {
                "matchExpressions": [expression("zone", "Exists")],
                "matchFields": [expression("metadata.name", "In", "n2")],
            },
            False,
        ),
        ({}, False),
    ],
)
def test_a_term_is_a_conjunction_and_an_empty_one_matches_nothing(
    term: dict[str, Any], matches: bool
) -> None:
    assert node_term(term).matches("n1", {"zone": "a", "cpus": "4"}) is matches


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (expression("a", "Like", "x"), '"Like" is not a valid node selector operator'),
        (expression("a", "Gt", "1", "2"), "single value"),
        (expression("a", "In"), "must be specified when"),
    ],
)
def test_a_term_that_makes_no_sense_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        node_term({"matchExpressions": [wrong]})


def test_a_pod_demands_its_selector_and_one_of_its_terms() -> None:
    first, second = ({"matchExpressions": [expression("zone", "In", each)]} for each in ("a", "b"))
    found = node_requirement(required(first, second, nodeSelector={"disk": "ssd"}))
    assert found.matches("n", {"zone": "b", "disk": "ssd"})
    assert not found.matches("n", {"zone": "b"})
    assert not found.matches("n", {"zone": "c", "disk": "ssd"})


def test_no_demand_is_met_by_everybody_and_no_term_by_nobody() -> None:
    assert node_requirement({}).trivial
    assert node_requirement({}).matches("n", {})
    assert not node_requirement(required()).matches("n", {})


def test_demands_that_say_the_same_are_equal_however_they_are_written() -> None:
    one = required({"matchExpressions": [expression("zone", "In", "a", "b")]})
    other = required({"matchExpressions": [expression("zone", "In", "b", "a", "a")]})
    assert node_requirement(one).key == node_requirement(other).key


def test_wishes_without_weight_or_condition_say_nothing() -> None:
    some = {"matchExpressions": [expression("zone", "Exists")]}
    wishes = [
        {"weight": 5, "preference": some},
        {"weight": 0, "preference": some},
        {"weight": 9, "preference": {}},
    ]
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": wishes}
    found = preferred_node_terms({"affinity": {"nodeAffinity": affinity}})
    assert [each.weight for each in found] == [5]


@pytest.mark.parametrize(
    ("raw", "namespace", "matches"),
    [
        ({}, "own", True),
        ({}, "other", False),
        ({"namespaces": ["other"]}, "other", True),
        ({"namespaces": ["other"]}, "own", False),
        ({"namespaceSelector": {}}, "any", True),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, "any", True),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, "any", False),
        ({"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "x"}}}, "b", True),
    ],
)
def test_a_pod_term_means_its_own_namespace_unless_it_names_or_selects_others(
    raw: dict[str, Any], namespace: str, matches: bool
) -> None:
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    term = affinity_term({**selector, **raw}, "own")
    assert term.matches(namespace, {"app": "web"}, {"team": "x"}) is matches
    assert not term.matches(namespace, {"app": "db"}, {"team": "x"})


def test_required_and_preferred_terms_are_read_by_their_kind() -> None:
    term = {"topologyKey": "zone"}
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 3, "podAffinityTerm": term}
            ]
        },
    }
    assert [each.topology_key for each in required_affinity(affinity, "podAffinity", "n")] == [
        "zone"
    ]
    assert required_affinity(affinity, "podAntiAffinity", "n") == ()
    [wish] = preferred_affinity(affinity, "podAntiAffinity", "n")
    assert (wish.weight, wish.term.topology_key) == (3, "zone")
