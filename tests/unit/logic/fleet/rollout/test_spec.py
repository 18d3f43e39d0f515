"""A Rollout's wishes as numbers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.rollout.spec import (
    LAST,
    Failures,
    Judge,
    Pace,
    Portion,
    RolloutSpec,
    Wave,
    read_spec,
    spec_errors,
)


def test_durations_are_seconds_and_portions_numbers_or_percentages() -> None:
    spec = read_spec(
        {
            "waves": [{"name": "canary", "until": 3, "soak": "1h30m"}],
            "pace": {"concurrency": "20%", "maxUnavailable": 7},
            "judge": {"minReady": "1500ms"},
        }
    )
    assert spec.waves[0].soak == 5400
    assert spec.waves[0].until == Portion(3)
    assert spec.pace.concurrency == Portion(20, percent=True)
    assert spec.pace.max_unavailable == Portion(7)
    assert spec.judge.min_ready == 1.5
    assert not spec.errors


def test_after_the_named_waves_comes_one_with_everybody_else() -> None:
    spec = read_spec({"waves": [{"name": "canary", "until": 3}]})
    assert spec.last == 2
    assert spec.wave(1).name == "canary"
    assert spec.wave(2).until is None


def test_an_object_stored_without_defaults_reads_like_one_with_them() -> None:
    defaulted = {
        "pace": {"concurrency": "10%", "maxUnavailable": "10%"},
        "judge": {"minReady": "30s", "deadline": "15m", "evidence": 1},
        "offline": {"after": "5m", "policy": "Defer"},
        "joining": {"concurrency": 50},
        "leaving": {"concurrency": 50},
        "onFailure": "Rollback",
        "supersede": "Replace",
        "paused": False,
    }
    assert read_spec({}) == read_spec(defaulted)


def test_what_a_foreign_hub_lets_pass_is_found_here() -> None:
    errors = spec_errors({"spec": {"waves": [{"name": "a", "until": "0%", "soak": "soon"}]}})
    assert {error.field for error in errors} == {"spec.waves[0].until", "spec.waves[0].soak"}


@given(st.integers(1, 100), st.integers(0, 10_000))
def test_a_percentage_rounds_up_to_somebody_and_down_to_nobody(percent: int, total: int) -> None:
    portion = Portion(percent, percent=True)
    assert portion.floor(total) <= total * percent / 100 <= portion.of(total) <= total
    assert portion.of(total) > 0 or total == 0


def test_a_rollout_fails_only_when_both_limits_are_exceeded() -> None:
    failures = Failures(Portion(1, percent=True), above=1)
    assert not failures.exceeded(1, 10)
    assert failures.exceeded(2, 10)
    assert not failures.exceeded(10, 1000)
    assert failures.exceeded(11, 1000)
    assert Failures().exceeded(1, 1000)


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"judge": {"minReady": "-1s"}}, "spec.judge.minReady", "must not be negative"),
        ({"judge": {"failWhen": "reports.size()"}}, "spec.judge.failWhen", "want true or false"),
        (
            {"judge": {"checks": [{"query": "q", "holds": "rows["}]}},
            "spec.judge.checks[0].holds",
            "Syntax error",
        ),
        (
            {"waves": [{"name": "a"}, {"name": "b", "until": 3}]},
            "spec.waves[1]",
            "wave 'a' holds everybody of this selector already",
        ),
        (
            {"waves": [{"name": "a", "until": "20%"}, {"name": "b", "until": "20%"}]},
            "spec.waves[1]",
            "want more than 20% of wave 'a'",
        ),
        (
            {"waves": [{"name": "a", "until": 5}, {"name": "b", "until": 4}]},
            "spec.waves[1]",
            "want more than 5 of wave 'a'",
        ),
    ],
)
def test_an_error_names_its_field_and_what_was_wanted(
    spec: dict[str, Any], field: str, words: str
) -> None:
    [error] = spec_errors({"spec": spec})
    assert error.field.startswith(field)
    assert words in str(error)


def test_waves_of_other_selectors_or_other_units_are_not_compared() -> None:
    ring = {"matchLabels": {"ring": "1"}}
    waves = [
        {"name": "a", "until": 5},
        {"name": "b", "until": "5%"},
        {"name": "c", "until": 2, "selector": ring},
        {"name": "d", "selector": ring},
    ]
    assert not spec_errors({"spec": {"waves": waves}})


def test_checks_are_compiled_once_and_ask_their_query() -> None:
    [check] = read_spec(
        {"judge": {"checks": [{"query": "errors", "holds": "rows.size() == 0"}]}}
    ).judge.checks
    assert check.query == "errors"
    assert check.holds.holds([])
    assert not check.holds.holds([{}])


@pytest.mark.parametrize("until", ["9" * 5000 + "%", "\u0663%", "%", "-1%", "101%", 0, True, "ten"])
def test_a_portion_that_is_none_is_named_and_nothing_else_happens(until: object) -> None:
    [error] = spec_errors({"spec": {"waves": [{"name": "a", "until": until}]}})
    assert error.field == "spec.waves[0].until"
    assert "want a number from 1 on" in str(error)


def test_with_errors_everything_that_can_be_read_is_read() -> None:
    found = read_spec({"waves": [{"name": "a", "until": 2, "soak": "soon"}], "onFailure": "Pause"})
    assert [error.field for error in found.errors] == ["spec.waves[0].soak"]
    assert (found.waves[0].until, found.waves[0].soak) == (Portion(2), 0.0)
    assert found.on_failure == "Pause"


def test_a_forced_revision_has_its_reason() -> None:
    found = read_spec({"force": {"revision": 7, "reason": "the others are broken"}})
    assert (found.force, found.force_reason) == (7, "the others are broken")


def test_a_selector_that_makes_no_sense_is_named() -> None:
    bad = {"matchExpressions": [{"key": "a", "operator": "Odd"}]}
    errors = spec_errors({"spec": {"waves": [{"name": "a", "selector": bad}]}})
    assert errors
    assert all(error.field.startswith("spec.waves[0].selector") for error in errors)


def test_everything_that_is_asked_for_is_read() -> None:
    ring = {"matchLabels": {"ring": "1"}}
    found = read_spec(
        {
            "waves": [
                {"name": "a", "selector": ring, "until": "5%", "spreadBy": ["region", "site"],
                 "soak": "2m", "approval": True},
                {"name": "b"},
            ],
            "pace": {"concurrency": 3, "maxUnavailable": "7%", "per": ["site"]},
            "judge": {
                "minReady": "1s", "deadline": "2s", "evidence": 4, "external": ["smoke"],
                "failures": {"max": "3%", "above": 2}, "failWhen": "reports.size() > 3",
                "checks": [{"query": "q", "holds": "true"}, {"query": "r", "holds": "false"}],
            },
            "offline": {"after": "3s", "policy": "Wait"},
            "joining": {"concurrency": 4},
            "leaving": {"concurrency": "5%"},
            "onFailure": "Continue",
            "supersede": "Queue",
            "paused": True,
        }
    )  # fmt: skip
    assert not found.errors
    first, second = found.waves
    assert (first.name, first.until, first.spread_by) == ("a", Portion(5, True), ("region", "site"))
    assert (first.soak, first.approval, bool(first.selector)) == (120.0, True, True)
    assert second == Wave("b")
    assert found.pace == Pace(Portion(3), Portion(7, True), ("site",))
    judge = found.judge
    assert (judge.min_ready, judge.deadline, judge.evidence) == (1.0, 2.0, 4)
    assert (judge.external, judge.failures) == (("smoke",), Failures(Portion(3, True), 2))
    assert judge.fail_when is not None
    assert judge.fail_when.holds([1, 2, 3, 4])
    assert not judge.fail_when.holds([1])
    assert [each.query for each in judge.checks] == ["q", "r"]
    assert (found.offline_after, found.offline_policy) == (3.0, "Wait")
    assert (found.join_pace, found.leave_pace) == (Portion(4), Portion(5, True))
    assert (found.on_failure, found.supersede, found.paused) == ("Continue", "Queue", True)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"waves": None, "pace": None, "judge": None, "offline": None, "force": None},
        {"judge": {"failures": None, "checks": None, "external": None}, "joining": None},
        {"pace": {"per": None, "concurrency": None}, "leaving": {}, "force": {"revision": None}},
    ],
)
def test_what_is_left_out_is_as_if_nothing_had_been_asked_for(spec: dict[str, Any]) -> None:
    assert read_spec(spec) == RolloutSpec()
    assert spec_errors({"spec": spec}) == spec_errors({}) == []


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert (Judge().min_ready, Judge().deadline, Judge().evidence) == (30.0, 900.0, 1)
    assert Pace() == Pace(Portion(10, True), Portion(10, True), ())
    found = RolloutSpec()
    assert (found.offline_after, found.join_pace, found.leave_pace) == (
        300.0, Portion(50), Portion(50),
    )  # fmt: skip


@given(st.integers(0, 4))
def test_every_number_of_a_wave_is_one_and_the_last_holds_everybody(count: int) -> None:
    spec = RolloutSpec(tuple(Wave(f"w{n}", until=Portion(n)) for n in range(1, count + 1)))
    assert spec.last == count + 1
    assert [spec.wave(n).name for n in range(1, count + 1)] == [
        f"w{n}" for n in range(1, count + 1)
    ]
    assert spec.wave(spec.last) is LAST
    assert spec.wave(0) is LAST, "before the first one is open there is none"
    assert (LAST.until, LAST.selector) == (None, ())


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 100), st.integers(0, 5))
def test_more_that_are_bad_never_make_a_failed_rollout_good(
    bad: int, total: int, percent: int, above: int
) -> None:
    failures = Failures(Portion(percent, percent=True), above)
    if failures.exceeded(bad, total):
        assert failures.exceeded(bad + 1, total)
        assert bad > above
        assert bad * 100 > total * percent
    else:
        assert bad <= above or bad * 100 <= total * percent


@pytest.mark.parametrize(
    ("failures", "bad", "exceeded"),
    [
        (Failures(), 0, False),
        (Failures(), 1, True),
        (Failures(above=2), 2, False),
        (Failures(above=2), 3, True),
        (Failures(Portion(3)), 3, False),
        (Failures(Portion(3)), 4, True),
        (Failures(Portion(3), above=9), 9, False),
        # Half a percent of a hundred is nobody: what must not be exceeded is rounded down.
        (Failures(Portion(1, percent=True)), 1, True),
    ],
)
def test_so_many_may_be_bad_and_not_one_more(failures: Failures, bad: int, exceeded: bool) -> None:
    assert failures.exceeded(bad, 99) is exceeded


@pytest.mark.parametrize("total", [0, 1, 7, 1000])
def test_a_number_is_the_same_of_however_many(total: int) -> None:
    assert Portion(3).of(total) == Portion(3).floor(total) == 3


@pytest.mark.parametrize(
    ("until", "read"),
    [(1, Portion(1)), ("1%", Portion(1, True)), ("100%", Portion(100, True))],
)
def test_the_smallest_and_the_largest_portion_are_portions(until: Any, read: Portion) -> None:
    [wave] = read_spec({"waves": [{"name": "a", "until": until}]}).waves
    assert wave.until == read


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"waves": [{"name": "a", "until": 1}, {"name": "b", "soak": "x"}]}, "spec.waves[1].soak"),
        ({"pace": {"concurrency": "0%"}}, "spec.pace.concurrency"),
        ({"pace": {"maxUnavailable": 0}}, "spec.pace.maxUnavailable"),
        ({"judge": {"deadline": "x"}}, "spec.judge.deadline"),
        ({"judge": {"failures": {"max": "x"}}}, "spec.judge.failures.max"),
        ({"judge": {"checks": [{"query": "a", "holds": "true"}, {"query": "b"}]}},
         "spec.judge.checks[1].holds"),
        ({"offline": {"after": "-1s"}}, "spec.offline.after"),
        ({"joining": {"concurrency": False}}, "spec.joining.concurrency"),
        ({"leaving": {"concurrency": "x"}}, "spec.leaving.concurrency"),
    ],
)  # fmt: skip
def test_each_member_is_named_by_its_own_path(section: dict[str, Any], field: str) -> None:
    assert [error.field for error in spec_errors({"spec": section})] == [field]


def test_a_check_that_cannot_be_read_is_left_out_and_the_others_are_not() -> None:
    checks = [{"query": "a", "holds": "rows["}, {"query": "b", "holds": "rows.size() == 0"}]
    found = read_spec({"judge": {"checks": checks}})
    assert [each.query for each in found.judge.checks] == ["b"]
    assert len(found.errors) == 1


def test_a_wave_is_compared_with_every_earlier_one_of_its_selector() -> None:
    ring = {"matchLabels": {"ring": "1"}}
    waves = [
        {"name": "a", "until": 5, "selector": ring},
        {"name": "b", "until": 50},
        {"name": "c", "until": 4, "selector": ring},
        {"name": "d", "until": 50},
        {"name": "e", "until": 51},
    ]
    errors = spec_errors({"spec": {"waves": waves}})
    assert [error.field for error in errors] == ["spec.waves[2].until", "spec.waves[3].until"]
    assert "of wave 'a'" in str(errors[0])
    assert "of wave 'b'" in str(errors[1])


def test_everybody_twice_is_once_too_often() -> None:
    [error] = spec_errors({"spec": {"waves": [{"name": "a"}, {"name": "b"}]}})
    assert error.field == "spec.waves[1].until"
    assert "all" in str(error)


def test_a_negative_duration_is_read_as_none_at_all() -> None:
    found = read_spec({"offline": {"after": "-5m"}})
    assert found.offline_after == 0.0
    assert len(found.errors) == 1
