"""Policies of Jobs: which failures count, and which indexes suffice."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.job_policies import (
    failure_policy_errors,
    index_count,
    success_policy_errors,
)

CODES: Object = {"operator": "In", "values": [1, 2]}


def of_rule(rule: Object, **spec: Any) -> list[str]:
    template = {"spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}}
    whole = {"template": template, "podFailurePolicy": {"rules": [rule]}, **spec}
    return [str(error) for error in failure_policy_errors(whole, "p")]


def of_success(*rules: Object, **spec: Any) -> list[str]:
    whole = {
        "completionMode": "Indexed",
        "completions": 10,
        "successPolicy": {"rules": list(rules)},
        **spec,
    }
    return [str(error) for error in success_policy_errors(whole, "s")]


def test_a_rule_has_an_action_of_the_four() -> None:
    assert of_rule({"action": "FailJob", "onExitCodes": CODES}) == []
    (text,) = of_rule({"onExitCodes": CODES})
    assert text == (
        'p.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'
    )
    (text,) = of_rule({"action": "Explode", "onExitCodes": CODES})
    assert text.startswith('p.rules[0].action: Unsupported value: "Explode"')


def test_failing_an_index_needs_a_limit_for_each_index() -> None:
    rule = {"action": "FailIndex", "onExitCodes": CODES}
    (text,) = of_rule(rule)
    assert text.endswith("requires the backoffLimitPerIndex to be set")
    assert of_rule(rule, backoffLimitPerIndex=0) == []


def test_a_rule_looks_at_exit_codes_or_at_conditions() -> None:
    conditions = [{"type": "DisruptionTarget", "status": "True"}]
    assert of_rule({"action": "Ignore", "onPodConditions": conditions}) == []
    (text,) = of_rule({"action": "Ignore"})
    assert text.endswith("specifying one of OnExitCodes and OnPodConditions is required")
    (text,) = of_rule({"action": "Ignore", "onPodConditions": conditions, "onExitCodes": CODES})
    assert text.endswith("specifying both OnExitCodes and OnPodConditions is not supported")


@pytest.mark.parametrize(
    ("codes", "texts"),
    [
        ({"containerName": "c"}, []),
        ({"containerName": "i"}, []),
        ({"containerName": "x"}, ["containerName: Invalid value"]),
        ({"operator": ""}, ["operator: Required value"]),
        ({"values": []}, ["values: Invalid value: []: at least one value is required"]),
        ({"values": [0, 1]}, ["values[0]: Invalid value: 0: must not be 0 for the In operator"]),
        ({"values": [0], "operator": "NotIn"}, []),
        ({"values": [1, 1]}, ["values[1]: Duplicate value: 1"]),
        ({"values": [2, 1]}, ["values: Invalid value: [2,1]: must be ordered"]),
        ({"values": list(range(1, 257))}, ["values: Too many: 256"]),
    ],
)
def test_exit_codes_are_ordered_and_of_a_known_container(codes: Object, texts: list[str]) -> None:
    found = of_rule({"action": "Count", "onExitCodes": {**CODES, **codes}})
    assert len(found) == len(texts)
    for text, wanted in zip(found, texts, strict=True):
        assert text.startswith(f"p.rules[0].onExitCodes.{wanted}")


def test_conditions_have_a_type_and_a_status() -> None:
    texts = of_rule({"action": "Count", "onPodConditions": [{"type": "a b"}]})
    assert [text.split(": ")[0] for text in texts] == [
        "p.rules[0].onPodConditions[0].type",
        "p.rules[0].onPodConditions[0].status",
    ]


def test_rules_and_patterns_are_at_most_twenty() -> None:
    condition = {"type": "A", "status": "True"}
    rule = {"action": "Count", "onPodConditions": [condition] * 20}
    spec: Object = {"podFailurePolicy": {"rules": [rule] * 21}}
    assert [str(e) for e in failure_policy_errors(spec, "p")] == [
        "p.rules: Too many: 21: must have at most 20 items"
    ]
    (text,) = of_rule({"action": "Count", "onPodConditions": [condition] * 21})
    assert text.startswith("p.rules[0].onPodConditions: Too many: 21")


def test_success_by_indexes_is_for_indexed_jobs() -> None:
    (text,) = of_success({"succeededCount": 1}, completionMode="NonIndexed")
    assert text.endswith("requires indexed completion mode")
    assert of_success({"succeededCount": 1}) == []


def test_a_success_policy_has_rules_and_each_rule_a_criterion() -> None:
    (text,) = of_success()
    assert text.startswith("s.rules: Required value")
    (text,) = of_success({})
    assert text.startswith("s.rules[0]: Required value: at least one of succeededCount")
    texts = of_success(*[{"succeededCount": 1}] * 21)
    assert texts == ["s.rules: Too many: 21: must have at most 20 items"]


@pytest.mark.parametrize(
    ("rule", "ends"),
    [
        ({"succeededCount": 10}, []),
        ({"succeededCount": -1}, ["must be greater than or equal to 0"]),
        ({"succeededCount": 11}, ["(the number of specified completions)"]),
        ({"succeededIndexes": "0-3", "succeededCount": 4}, []),
        (
            {"succeededIndexes": "0-3", "succeededCount": 5},
            ["(the number of indexes in the specified succeededIndexes field)"],
        ),
        ({"succeededIndexes": "x"}, ['cannot convert string to integer for index: "x"']),
    ],
)
def test_a_count_fits_into_what_it_counts(rule: Object, ends: list[str]) -> None:
    found = of_success(rule)
    assert len(found) == len(ends)
    assert all(text.endswith(end) for text, end in zip(found, ends, strict=True))


def test_indexes_that_cannot_be_read_count_as_none() -> None:
    found = of_success({"succeededIndexes": "9-1", "succeededCount": 1})
    assert [text.split(": ")[0] for text in found] == [
        "s.rules[0].succeededIndexes",
        "s.rules[0].succeededCount",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", 'cannot convert string to integer for index: "a"'),
        ("-1", 'cannot convert string to integer for index: ""'),
        ("1-", 'cannot convert string to integer for index: ""'),
        ("10", 'too large index: "10"'),
        ("1-10", 'too large index: "10"'),
        ("3-2", "non-increasing order, previous: 3, current: 2"),
        ("3-3", "non-increasing order, previous: 3, current: 3"),
        ("3,3", "non-increasing order, previous: 3, current: 3"),
        ("1-4,2", "non-increasing order, previous: 4, current: 2"),
        (
            "1-2-3",
            (
                'the fragment "1-2-3" violates the requirement that an index interval can have at '
                "most two parts separated by '-'"
            ),
        ),
    ],
)
def test_intervals_that_name_no_indexes_say_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        index_count(text, 10)


@given(st.sets(st.integers(0, 99)))
def test_intervals_of_a_set_count_its_members(indexes: set[int]) -> None:
    intervals: list[list[int]] = []
    for index in sorted(indexes):
        if intervals and intervals[-1][-1] == index - 1:
            intervals[-1].append(index)
        else:
            intervals.append([index])
    text = ",".join(str(i[0]) if len(i) == 1 else f"{i[0]}-{i[-1]}" for i in intervals)
    assert index_count(text, 100) == len(indexes)
