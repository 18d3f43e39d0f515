"""What is asked of placement: equal strategies ask the same, holders and newcomers do not."""

from __future__ import annotations

from skerry.logic.fleet.placement.strategy import Strategy
from skerry.scheduler.placement.wish import Wish


def test_answers_can_be_remembered_for_equal_wishes() -> None:
    assert Wish(Strategy()) == Wish(Strategy())
    assert hash(Wish(Strategy())) == hash(Wish(Strategy()))


def test_who_holds_a_workload_is_asked_about_apart() -> None:
    assert Wish(Strategy(), held=True) != Wish(Strategy())
    assert Wish(Strategy()).held is False
