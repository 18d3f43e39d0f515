"""What cannot happen stops loudly."""

from __future__ import annotations

import pytest

from skerry.kit.invariant import InvariantError, invariant, present


@pytest.mark.parametrize("falsy", [False, 0, "", None, []])
def test_what_does_not_hold_raises_with_the_message(falsy: object) -> None:
    with pytest.raises(InvariantError, match="a bug"):
        invariant(falsy, "a bug")


def test_what_holds_passes() -> None:
    invariant([0], "never")


def test_only_none_is_absent() -> None:
    assert present(0, "never") == 0
    with pytest.raises(InvariantError, match="gone"):
        present(None, "gone")
