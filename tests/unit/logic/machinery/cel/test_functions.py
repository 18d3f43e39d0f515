"""The register of functions, and what their calls cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skerry.logic.machinery.cel.functions import (
    OVERLOADS,
    copying,
    declare,
    parsing,
    reading,
)
from skerry.logic.machinery.cel.typed import COST, READ_COST, CostExceeded, Scope

NAME = "test.only"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    OVERLOADS.pop(NAME, None)


def test_reading_costs_a_tenth_for_each_element_or_byte() -> None:
    assert reading("ab", [1, 2, 3], {"k": 1}, b"x", 7, None) == pytest.approx(7 * READ_COST)
    assert reading() == 0


def test_copies_are_dearer_than_reading_and_parsing_has_a_price_of_its_own() -> None:
    assert copying([1, 2], [3]) > reading([1, 2], [3])
    assert parsing("") > 0
    assert parsing("abc") == parsing("") + reading("abc")


def test_one_function_serves_every_signature() -> None:
    @declare(NAME, "(int) int", "string.(int) int")
    def twice(*values: int) -> int:
        return values[-1] * 2

    first, second = OVERLOADS[NAME]
    assert (first.member, second.member) == (False, True)
    assert first.call({COST: 0}, 2) == 4
    assert first.price is None


def test_a_weighted_function_is_charged_for_reading_unless_it_says() -> None:
    declare(NAME, "(string) int", weight="linear")(len)
    declare(NAME, "(bytes) int", weight="linear", price=lambda _: 5)(len)
    plain, priced = OVERLOADS[NAME]
    scope: Scope = {COST: 10.0}
    assert plain.call(scope, "abcd") == 4
    assert scope[COST] == pytest.approx(10 - 4 * READ_COST)
    priced.call(scope, b"")
    assert scope[COST] == pytest.approx(10 - 4 * READ_COST - 5)


def test_a_metered_function_charges_itself() -> None:
    @declare(NAME, "(int) int", weight="linear", metered=True)
    def spends(scope: Scope, value: int) -> int:
        scope[COST] -= value
        return value

    (only,) = OVERLOADS[NAME]
    scope: Scope = {COST: 10.0}
    assert only.call(scope, 3) == 3
    assert scope[COST] == 7


def test_a_call_that_cannot_be_paid_is_not_made() -> None:
    made: list[str] = []
    declare(NAME, "(string) int", price=lambda _: 11)(made.append)
    with pytest.raises(CostExceeded):
        OVERLOADS[NAME][0].call({COST: 10.0}, "a")
    assert made == []
