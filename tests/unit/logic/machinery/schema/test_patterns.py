"""Patterns are linear in the text and in their program, and both are paid for."""

from __future__ import annotations

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.schema import validate
from skerry.logic.machinery.schema.patterns import _KEPT, PatternError, compiled
from skerry.logic.machinery.work import LongWork, limited

# Each byte of a text may cost RE2 ten microseconds with this one.
COSTLY = "(.*a.{900}b)"


def text_schema(pattern: str) -> Schema:
    return Schema({"type": "object", "properties": {"t": {"type": "string", "pattern": pattern}}})


def test_a_costly_pattern_on_a_long_text_is_not_searched_where_there_is_no_time() -> None:
    schema, obj = text_schema(COSTLY), {"t": "ab" * 10_000}
    compiled(COSTLY)
    with pytest.raises(LongWork):
        limited(25_000, lambda: validate(schema, obj))
    assert limited(25_000, lambda: validate(schema, {"t": "ab"}))


def test_an_ordinary_pattern_on_an_ordinary_text_is() -> None:
    schema = text_schema(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    assert limited(25_000, lambda: validate(schema, {"t": "a" * 2000})) == []


@pytest.mark.parametrize("pattern", [r"^[\p{L}\p{N}_-]{1,63}$", r".{1000}", r"\pL{20}"])
def test_a_large_program_is_compiled_only_where_there_is_time(pattern: str) -> None:
    with pytest.raises(LongWork):
        limited(25_000, lambda: compiled(pattern))
    assert limited(1_000_000, lambda: compiled(pattern)).size > 1000


@pytest.mark.parametrize("pattern", [r"\pL{999}", r"[\pL\pN]{1000}", r"(\pL{30}){30}", "x" * 9000])
def test_a_program_beyond_the_limit_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="expression too large"):
        compiled(pattern)


def test_few_compiled_patterns_are_kept() -> None:
    for number in range(2000):
        compiled(f"^pattern-{number}$")
    for number in range(20):
        compiled(rf"\pL{{20}}x{number}")
    assert len(_KEPT) <= 256


def test_groups_count_for_where_and_not_for_what() -> None:
    assert compiled("(a)(b)?").search("xaby") is not None
    found = compiled("(a)(b)?").search("xaby")
    assert found is not None
    assert found.group() == "ab"
