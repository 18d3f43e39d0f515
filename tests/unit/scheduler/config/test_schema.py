"""The strict decoder of configuration files, and Go's durations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.schema import (
    ARGUMENTS,
    CONFIGURATION,
    Decoder,
    format_duration,
    parse_duration,
)


def decode(value: Any, schema: Any = CONFIGURATION) -> Any:
    decoder = Decoder("KubeSchedulerConfiguration")
    found = decoder.decode(value, schema)
    decoder.check()
    return found


def test_what_is_known_is_kept_and_null_is_left_out() -> None:
    raw = {"parallelism": 3, "enableProfiling": None, "profiles": [{"schedulerName": "a"}]}
    assert decode(raw) == {"parallelism": 3, "profiles": [{"schedulerName": "a"}]}


def test_every_unknown_field_is_named_with_its_path() -> None:
    raw = {"odd": 1, "profiles": [{"plugins": {"filter": {"enabled": [{"nme": "x"}]}}}]}
    with pytest.raises(ConfigurationError) as failed:
        decode(raw)
    assert str(failed.value) == (
        'strict decoding error: unknown field "odd", unknown field '
        '"profiles[0].plugins.filter.enabled[0].nme"'
    )


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"parallelism": "3"}, ("cannot unmarshal string into Go struct field "
         "KubeSchedulerConfiguration.parallelism of type int32")),
        ({"parallelism": True}, "cannot unmarshal bool into"),
        ({"parallelism": 1.5}, "cannot unmarshal number into"),
        ({"enableProfiling": "yes"}, "of type bool"),
        ({"profiles": {}}, "cannot unmarshal object into"),
        ({"profiles": ["a"]}, "cannot unmarshal string into"),
        ({"clientConnection": {"qps": True}}, "of type float32"),
        ({"leaderElection": {"leaseDuration": 15}}, "of type v1.Duration"),
        ({"leaderElection": {"leaseDuration": "15"}}, 'time: invalid duration "15"'),
    ],
)  # fmt: skip
def test_a_wrong_type_ends_it(raw: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError) as failed:
        decode(raw)
    assert text in str(failed.value)


def test_arguments_of_any_form_pass() -> None:
    assert decode({"addedAffinity": {"x": [1]}}, ARGUMENTS["NodeAffinity"]) == {
        "addedAffinity": {"x": [1]}
    }
    assert decode({"clientConnection": {"qps": 5}}) == {"clientConnection": {"qps": 5}}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("1.5h", 5400),
        ("-2s", -2),
        ("+2s", 2),
        ("0", 0),
        ("100ms", 0.1),
        ("1us", 1e-6),
    ],
)
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "1x", "1 s", "--1s", "1d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigurationError, match="invalid duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.1, "100ms"), (15, "15s"), (90, "1m30s"), (3600, "1h0m0s"), (1.5, "1.5s")],
)
def test_durations_are_printed_as_go_does(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(0, 10**6))
def test_whole_seconds_survive(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
