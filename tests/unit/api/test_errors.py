"""Failures repeat little of what was sent, whatever that was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skerry.api.errors import (
    BadRequest,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    shown,
)


def test_a_status_repeats_little_of_what_was_sent() -> None:
    long = "x" * 60_000
    for error in (
        Forbidden.of(long, long, long, long),
        NotFound.of(long, long, long),
        BadRequest(long),
        Invalid.of("g", "K", long, [FieldError.invalid(long, long, long)] * 1000),
        TooManyRequests(long),
    ):
        assert len(json.dumps(error.status())) < 350_000
        assert len(error.status()["message"]) < 8300


def test_many_errors_are_reported_as_a_hundred_and_how_many_more() -> None:
    errors = [FieldError.required(f"spec.f{number}") for number in range(250)]
    status = Invalid.of("", "Pod", "p", errors).status()
    assert len(status["details"]["causes"]) == 100
    assert "and 150 more errors]" in status["message"]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ('a"b\\c\nd', '"a\\"b\\\\c\\nd"'),
        ({"b": [1, None], "a": {}}, '{"a":{},"b":[1,null]}'),
    ],
)
def test_values_are_shown_as_kubernetes_prints_them(value: Any, wanted: str) -> None:
    assert shown(value) == wanted


class Counted(dict[str, Any]):
    """A mapping that counts how often a member is read."""

    reads = 0

    def __getitem__(self, key: str) -> Any:
        type(self).reads += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("size", [10_000, 20_000])
def test_showing_a_large_value_reads_no_more_of_it_than_is_shown(size: int) -> None:
    Counted.reads = 0
    text = shown(Counted({f"key-{number:06d}": number for number in range(size)}))
    assert text.startswith('{"key-000000":0,"key-000001":1,')
    assert text.endswith("...")
    assert len(text) < 1100
    assert Counted.reads < 100


def test_a_deep_value_is_shown_as_far_as_it_is_readable() -> None:
    value: Any = "leaf"
    for _ in range(900):
        value = [value]
    assert shown(value).count("[") < 40
