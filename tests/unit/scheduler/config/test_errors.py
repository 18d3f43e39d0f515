"""Errors of a configuration as Kubernetes prints an aggregate."""

from __future__ import annotations

from skerry.api.errors import FieldError
from skerry.scheduler.config.errors import aggregated


def test_one_error_stands_alone_and_several_in_brackets() -> None:
    assert aggregated(["one"]) == "one"
    assert aggregated(["one", "two"]) == "[one, two]"


def test_an_error_that_is_found_twice_is_said_once() -> None:
    assert aggregated(["one", "two", "one"]) == "[one, two]"
    assert aggregated(["one", "one"]) == "one"


def test_errors_of_fields_are_printed_with_their_field() -> None:
    found = aggregated([FieldError.required("profiles[0].schedulerName"), "other"])
    assert found.startswith("[profiles[0].schedulerName: Required value")
    assert found.endswith(", other]")
