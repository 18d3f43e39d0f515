"""When it is known what there is to tell of a placement."""

from __future__ import annotations

from skerry.controllers.placement_translator.problems import Problems
from skerry.logic.fleet.translation.items import PlacementName

P, Q = PlacementName("wmw", "p"), PlacementName("wmw", "q")


def _problems() -> tuple[Problems, list[PlacementName]]:
    news: list[PlacementName] = []
    return Problems(news.append), news


def test_nothing_is_known_until_every_mailbox_has_been_looked_at() -> None:
    problems, news = _problems()
    assert problems.awaits(P, ["a", "b"])
    assert problems.awaits(Q, ["a"])
    problems.complete("a")
    assert news == [P, Q]
    assert problems.awaits(P, ["a", "b"])
    assert not problems.awaits(Q, ["a"])
    problems.complete("b")
    assert not problems.awaits(P, ["a", "b"])


def test_looking_at_a_mailbox_again_is_no_news() -> None:
    problems, news = _problems()
    problems.awaits(P, ["a"])
    problems.complete("a")
    problems.complete("a")
    assert news == [P]


def test_a_mailbox_that_is_gone_is_not_waited_for_and_another_of_its_name_is() -> None:
    problems, news = _problems()
    problems.awaits(P, ["a"])
    problems.forget_mailbox("a")
    assert news == [P]
    problems.complete("a")
    problems.forget_mailbox("a")
    assert problems.awaits(P, ["a"])


def test_a_placement_that_goes_nowhere_waits_for_nothing() -> None:
    problems, _ = _problems()
    assert not problems.awaits(P, [])
