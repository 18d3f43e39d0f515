"""What a placement asks for in its sources, and what contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.placement.reported_state import reported_state, reported_state_errors

SPECS = st.fixed_dictionaries(
    {},
    optional={
        "reportedState": st.sampled_from(["None", "Singleton", "Aggregate", "Else", 1]),
        "wantSingletonReportedState": st.sampled_from([True, False, "true"]),
    },
)


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ({}, "None"),
        ({"wantSingletonReportedState": False}, "None"),
        ({"wantSingletonReportedState": True}, "Singleton"),
        ({"reportedState": "None"}, "None"),
        ({"reportedState": "Singleton"}, "Singleton"),
        ({"reportedState": "Aggregate"}, "Aggregate"),
        ({"reportedState": "Aggregate", "wantSingletonReportedState": False}, "Aggregate"),
        ({"reportedState": "Singleton", "wantSingletonReportedState": True}, "Singleton"),
    ],
)
def test_either_field_says_which_state_a_source_gets(spec: dict[str, Any], state: str) -> None:
    assert reported_state(spec) == state
    assert not reported_state_errors(spec)


@pytest.mark.parametrize("said", ["None", "Aggregate"])
def test_a_contradiction_names_both_fields(said: str) -> None:
    spec = {"reportedState": said, "wantSingletonReportedState": True}
    [error] = reported_state_errors(spec)
    assert (error.type, error.field) == ("FieldValueInvalid", "spec.reportedState")
    assert said in error.message
    assert "spec.wantSingletonReportedState: true, which means Singleton" in error.message


@given(SPECS)
def test_whatever_a_server_stored_means_something(spec: dict[str, Any]) -> None:
    assert reported_state(spec) in ("None", "Singleton", "Aggregate")
