"""The time of a condition is that of its status, and others' conditions stay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.conditions import (
    dated,
    find_condition,
    is_true,
    ready_first,
    set_conditions,
)

NOW = "2030-01-02T00:00:00Z"
BEFORE = "2030-01-01T00:00:00Z"


def condition(kind: str, status: str = "True", reason: str = "R", **more: object) -> Object:
    return {"type": kind, "status": status, "reason": reason, **more}


def test_the_time_changes_with_the_status_alone() -> None:
    old = condition("Ready", lastTransitionTime=BEFORE)
    same = dated(condition("Ready", reason="Other", message="m"), old, NOW)
    assert same == condition("Ready", reason="Other", message="m", lastTransitionTime=BEFORE), (
        "a new reason is no transition"
    )
    assert dated(condition("Ready", "False"), old, NOW)["lastTransitionTime"] == NOW
    assert dated(condition("Ready"), None, NOW)["lastTransitionTime"] == NOW


def test_a_condition_that_never_had_a_time_gets_one() -> None:
    assert dated(condition("Ready"), condition("Ready"), NOW)["lastTransitionTime"] == NOW


def test_each_condition_keeps_its_place_and_new_ones_come_last() -> None:
    old = [condition(kind, lastTransitionTime=BEFORE) for kind in ("A", "B", "C")]
    found = set_conditions(old, [condition("D"), condition("B", "False")], NOW, dropped=("C",))
    assert [each["type"] for each in found] == ["A", "B", "D"]
    assert [each["lastTransitionTime"] for each in found] == [BEFORE, NOW, NOW]
    assert found[0] == old[0]


def test_the_generation_that_was_observed_is_carried() -> None:
    old = [condition("Ready", observedGeneration=1, lastTransitionTime=BEFORE)]
    (found,) = set_conditions(old, [condition("Ready", observedGeneration=2)], NOW)
    assert (found["observedGeneration"], found["lastTransitionTime"]) == (2, BEFORE)


def test_a_condition_is_found_by_its_type() -> None:
    obj = {"status": {"conditions": [condition("A"), condition("B", "False")]}}
    assert is_true(obj, "A")
    assert not is_true(obj, "B")
    assert not is_true(obj, "C")
    assert find_condition({"status": None}, "A") is None


def test_ready_comes_first_and_the_others_by_type() -> None:
    shown = ready_first([condition("Z"), condition("Ready"), condition("A")])
    assert [each["type"] for each in shown] == ["Ready", "A", "Z"]


KINDS = st.sampled_from("ABCD")
STATUSES = st.sampled_from(("True", "False", "Unknown"))
CONDITIONS = st.dictionaries(KINDS, STATUSES, max_size=4).map(
    lambda found: [condition(kind, status) for kind, status in found.items()]
)


@given(CONDITIONS, CONDITIONS)
def test_setting_twice_is_setting_once_and_nothing_else_changes(
    old: list[Object], wanted: list[Object]
) -> None:
    start = set_conditions((), old, BEFORE)
    once = set_conditions(start, wanted, NOW)
    assert set_conditions(once, wanted, "2031-01-01T00:00:00Z") == once
    kinds = {each["type"] for each in wanted}
    assert [each for each in once if each["type"] not in kinds] == [
        each for each in start if each["type"] not in kinds
    ]
    assert [each["type"] for each in once][: len(start)] == [each["type"] for each in start]
    said = {each["type"]: each["status"] for each in once}
    assert all(said[each["type"]] == each["status"] for each in wanted)
