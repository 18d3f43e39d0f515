"""Expressions that make one value of another, as conversions are written in."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.transformations import Transformation, TransformationError
from skerry.logic.machinery.work import Work

TEXT = Schema({"type": "string"})
NUMBERS = Schema({"type": "array", "items": {"type": "integer"}})


def made(text: str, schema: Schema, value: Any, work: float = 10_000) -> Any:
    return Transformation.compiled(text, schema).apply(value, Work(work))


@pytest.mark.parametrize(
    ("text", "schema", "value", "result"),
    [
        ("self + '!'", TEXT, "a", "a!"),
        ("self.map(x, x * 2)", NUMBERS, [1, 2], [2, 4]),
        ("{'size': self.size()}", NUMBERS, [1, 2], {"size": 2}),
        ("uint(self.size())", NUMBERS, [1], 1),
        ("null", TEXT, "a", None),
    ],
)
def test_what_comes_out_is_json(text: str, schema: Schema, value: Any, result: Any) -> None:
    assert made(text, schema, value) == result


@pytest.mark.parametrize(
    ("text", "schema", "words"),
    [
        ("self.", TEXT, "Syntax error"),
        ("other", TEXT, "undeclared reference"),
        ("self", Schema({}), "no type that expressions could see"),
    ],
)
def test_an_expression_that_means_nothing_is_refused(text: str, schema: Schema, words: str) -> None:
    with pytest.raises(TransformationError) as error:
        Transformation.compiled(text, schema)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("self[7]", [1], "index out of bounds"),
        ("duration('1s')", [], "cannot be stored as JSON"),
        ("{1: 2}", [], "cannot be stored as JSON"),
    ],
)
def test_what_cannot_be_computed_or_stored_is_an_error(text: str, value: Any, words: str) -> None:
    with pytest.raises(TransformationError) as error:
        made(text, NUMBERS, value)
    assert words in str(error.value)


def test_work_is_charged_and_ends() -> None:
    work = Work(5000)
    Transformation.compiled("self.map(x, x)", NUMBERS).apply(list(range(100)), work)
    assert 0 < work.left < 5000
    with pytest.raises(TransformationError, match="cost limit exceeded"):
        made("self.map(x, self)", NUMBERS, list(range(100)), 1000)
