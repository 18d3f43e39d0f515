"""What all workloads share: selectors, templates, counts, percentages, status."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.workload_parts import (
    MISMATCH,
    above_hundred_errors,
    availability_errors,
    collision_errors,
    count_errors,
    kept_running_errors,
    named_workload_warnings,
    selector_change_errors,
    selector_errors,
    selects,
    set_template_errors,
    share,
    share_errors,
    status_errors,
    template_match_errors,
    workload_warnings,
)
from skerry.logic.machinery.selectors import Selector

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))


@given(wanted=LABELS, labels=LABELS)
def test_the_short_way_to_compare_labels_agrees_with_the_selector(
    wanted: dict[str, str], labels: dict[str, str]
) -> None:
    selector: Object = {"matchLabels": wanted}
    assert selects(selector, labels) == Selector.from_label_selector(selector).matches(labels)


def test_expressions_are_asked_too() -> None:
    selector: Object = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    assert selects(selector, {}) is True
    assert selects(selector, {"a": "b"}) is False


def test_a_workload_has_a_selector_that_selects_something() -> None:
    assert [str(e) for e in selector_errors({}, "deployment")] == ["spec.selector: Required value"]
    (error,) = selector_errors({"selector": {}}, "deployment")
    assert error.message.endswith("empty selector is invalid for deployment")
    assert selector_errors({"selector": {"matchLabels": {"a": "b"}}}, "deployment") == []


def test_a_malformed_selector_is_refused_twice_but_for_daemon_sets() -> None:
    spec: Object = {"selector": {"matchLabels": {"a b": "c"}}}
    texts = [str(error) for error in selector_errors(spec, "deployment")]
    assert texts[-1].endswith("invalid label selector")
    assert len(selector_errors(spec, "daemonset")) == len(texts) - 1


@pytest.mark.parametrize(
    ("selector", "labels", "good"),
    [
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {}, False),
        (None, {"a": "b"}, False),
        # A malformed one is refused for what it is.
        ({"matchLabels": {"a b": "c"}}, {}, True),
    ],
)
def test_a_workload_recognises_its_own_pods(
    selector: Object | None, labels: Object, good: bool
) -> None:
    spec = {"selector": selector, "template": {"metadata": {"labels": labels}}}
    found = template_match_errors(spec)
    assert (found == []) is good
    assert all(error.message.endswith(MISMATCH) for error in found)


def test_nobody_looks_at_the_template_below_a_malformed_selector() -> None:
    assert set_template_errors({"selector": {"matchLabels": {"a b": "c"}}}, "ReplicaSet") == []
    assert set_template_errors({"selector": {"matchLabels": {"a": "b"}}}, "ReplicaSet")


def test_pods_of_a_workload_do_not_end_by_themselves() -> None:
    def of(**pod: Any) -> list[str]:
        return [e.field for e in kept_running_errors({"template": {"spec": pod}}, "Deployment")]

    assert of(restartPolicy="Always") == []
    assert of(restartPolicy="Never", activeDeadlineSeconds=1) == [
        "spec.template.spec.restartPolicy",
        "spec.template.spec.activeDeadlineSeconds",
    ]


def test_counts_are_not_negative_and_may_be_absent() -> None:
    found = count_errors({"a": -1, "b": 0, "c": None}, ("a", "b", "c", "d"), "status")
    assert [error.field for error in found] == ["status.a"]


def test_a_selector_stays_though_it_may_be_written_otherwise() -> None:
    def of(new: Object, old: Object) -> list[str]:
        return [
            str(error)
            for error in selector_change_errors(
                {"spec": {"selector": new}}, {"spec": {"selector": old}}
            )
        ]

    assert of({"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "b"}}) == []
    assert (
        of({"matchLabels": {"a": "b"}, "matchExpressions": []}, {"matchLabels": {"a": "b"}}) == []
    )
    (text,) = of({"matchLabels": {"a": "c"}}, {"matchLabels": {"a": "b"}})
    assert text.endswith("field is immutable")


@pytest.mark.parametrize(
    ("value", "good", "number"),
    [
        (0, True, 0),
        (5, True, 5),
        (-1, False, -1),
        ("0%", True, 0),
        ("250%", True, 250),
        ("5", False, 0),
        ("-5%", False, 0),
        ("5 %", False, 0),
        ("", False, 0),
    ],
)
def test_a_share_is_a_count_or_a_percentage(value: int | str, good: bool, number: int) -> None:
    assert (share_errors(value, "f") == []) is good
    assert share(value) == number


@pytest.mark.parametrize(
    ("value", "good"), [("100%", True), ("101%", False), (101, True), ("odd", True)]
)
def test_a_percentage_is_at_most_of_everything(value: int | str, good: bool) -> None:
    assert (above_hundred_errors(value, "f") == []) is good


def test_no_sort_of_replicas_outnumbers_all() -> None:
    status = {"replicas": 2, "readyReplicas": 3, "availableReplicas": 2, "observedGeneration": -1}
    found = status_errors({"status": status}, ("readyReplicas", "availableReplicas"))
    assert [str(error) for error in found] == [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas",
    ]
    assert status_errors({}, ("readyReplicas",)) == []


def test_available_replicas_are_ready_ones() -> None:
    assert availability_errors({"status": {"readyReplicas": 1, "availableReplicas": 1}}) == []
    (error,) = availability_errors({"status": {"availableReplicas": 1}})
    assert str(error) == (
        "status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"
    )


def test_collisions_are_not_forgotten() -> None:
    one, two = ({"status": {"collisionCount": count}} for count in (1, 2))
    assert collision_errors(two, one) == collision_errors(one, {}) == []
    (error,) = collision_errors(one, two)
    assert error.message.endswith("cannot be decremented")


def test_a_name_that_is_no_host_is_warned_of_first() -> None:
    spec = {"template": {"spec": {"terminationGracePeriodSeconds": -1}}}
    obj: Object = {"metadata": {"name": "a.b"}, "spec": spec}
    first, second = named_workload_warnings(obj)
    assert first.startswith("metadata.name: this is used in Pod names and hostnames")
    assert [second] == workload_warnings(obj)
    assert named_workload_warnings({"metadata": {"name": "a-b"}}) == []
