"""Rules of Jobs: which failures count, which index has had its last try, when enough succeeded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.workloads.indexes import format_indexes
from skerry.logic.workloads.job_policies import (
    COUNTED,
    FAILURES,
    IGNORED_FAILURES,
    failure_counts,
    failures_before,
    index_failed,
    success_of,
    verdict_of,
)


def failed(code: int = 1, *, container: str = "c", **metadata: Any) -> Object:
    ended = {"name": container, "state": {"terminated": {"exitCode": code}}}
    conditions = [{"type": "DisruptionTarget", "status": "True"}]
    return {
        "metadata": {"name": "p", "namespace": "ns", **metadata},
        "status": {"phase": "Failed", "containerStatuses": [ended], "conditions": conditions},
    }


def policy(*rules: Object) -> Object:
    return {"podFailurePolicy": {"rules": list(rules)}}


def on_exit(
    action: str, operator: str = "In", values: tuple[int, ...] = (1,), **more: str
) -> Object:
    return {"action": action, "onExitCodes": {"operator": operator, "values": values, **more}}


def test_the_first_rule_that_matches_decides_and_says_which() -> None:
    spec = policy(on_exit("Ignore", values=(9,)), on_exit("FailJob"), on_exit("Count"))
    found = verdict_of(spec, failed())
    assert found.action == "FailJob"
    assert found.message == (
        "Container c for pod ns/p failed with exit code 1 matching FailJob rule at index 1"
    )
    assert verdict_of(spec, failed(2)) == verdict_of({}, failed()) == COUNTED


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        (on_exit("Ignore", "NotIn", (2,)), "Ignore"),
        (on_exit("Ignore", "NotIn", (1,)), "Count"),
        (on_exit("Ignore", containerName="c"), "Ignore"),
        (on_exit("Ignore", containerName="other"), "Count"),
        (
            {
                "action": "Ignore",
                "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
            },
            "Ignore",
        ),
        (
            {
                "action": "Ignore",
                "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}],
            },
            "Count",
        ),
    ],
)
def test_rules_are_about_codes_containers_and_conditions(rule: Object, action: str) -> None:
    assert verdict_of(policy(rule), failed()).action == action


def test_containers_that_ended_well_are_never_meant() -> None:
    assert verdict_of(policy(on_exit("FailJob", "NotIn", (1,))), failed(0)) == COUNTED


def test_an_index_has_as_many_tries_as_its_limit_allows() -> None:
    spec: Object = {"backoffLimitPerIndex": 1}
    first = failed(annotations=failure_counts(spec, None))
    assert (failures_before(first), index_failed(spec, first)) == (0, False)
    second = failed(annotations=failure_counts(spec, first))
    assert (failures_before(second), index_failed(spec, second)) == (1, True)


def test_a_failure_that_is_ignored_costs_no_try_and_failindex_costs_all() -> None:
    ignoring = {"backoffLimitPerIndex": 0, **policy(on_exit("Ignore"))}
    assert not index_failed(ignoring, failed())
    assert failure_counts(ignoring, failed()) == {FAILURES: "0", IGNORED_FAILURES: "1"}
    assert index_failed({"backoffLimitPerIndex": 9, **policy(on_exit("FailIndex"))}, failed())


@given(
    st.sets(st.integers(0, 9)),
    st.none() | st.sets(st.integers(0, 9), min_size=1),
    st.none() | st.integers(1, 10),
)
def test_a_success_rule_counts_the_indexes_it_names_or_all(
    succeeded: set[int], named: set[int] | None, count: int | None
) -> None:
    rule: Object = {} if named is None else {"succeededIndexes": format_indexes(named)}
    if count is not None:
        rule["succeededCount"] = count
    met = success_of({"successPolicy": {"rules": [rule]}}, succeeded)
    counted = len(succeeded if named is None else succeeded & named)
    wanted = counted >= count if count is not None else False
    if named is not None:
        wanted = wanted or named <= succeeded
    assert (met is not None) is wanted
    assert met in (None, "Matched rules at index 0")
