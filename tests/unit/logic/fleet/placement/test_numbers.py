"""Numbers stay dense: what is freed is given again, the lowest first."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.placement.numbers import Numbers


def test_each_thing_has_one_number_and_the_lowest_free_one_comes_first() -> None:
    numbers: Numbers[str] = Numbers()
    assert [numbers.add(each) for each in "abca"] == [0, 1, 2, 0]
    numbers.remove(1)
    numbers.remove(0)
    assert (len(numbers), list(numbers)) == (1, ["c"])
    assert [numbers.add(each) for each in "xyz"] == [0, 1, 3]
    assert numbers.item(1) == "y"


def test_a_number_that_is_free_is_nobodys() -> None:
    numbers: Numbers[str] = Numbers()
    numbers.remove(numbers.add("a"))
    assert numbers.get("a") is None
    with pytest.raises(LookupError, match="number 0 is free"):
        numbers.item(0)
