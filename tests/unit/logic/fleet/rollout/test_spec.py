"""A Rollout's wishes as numbers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.rollout.spec import Failures, Portion, read_spec, spec_errors


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
