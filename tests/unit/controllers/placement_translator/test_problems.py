"""When it is known what there is to tell of a placement."""

from __future__ import annotations

from skerry.api.edge import Mailbox, edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.problems import Problems

A, B = Mailbox("imw", "a"), Mailbox("imw", "b")
P, Q = edge_placement_ref("wmw", "p"), edge_placement_ref("wmw", "q")


def _problems() -> tuple[Problems, list[ObjectRef]]:
    news: list[ObjectRef] = []
    return Problems(news.append), news


def test_nothing_is_known_until_every_mailbox_has_been_looked_at() -> None:
    problems, news = _problems()
    assert problems.awaits(P, [A, B])
    assert problems.awaits(Q, [A])
    problems.complete(A)
    assert news == [P, Q]
    assert problems.awaits(P, [A, B])
    assert not problems.awaits(Q, [A])
    problems.complete(B)
    assert not problems.awaits(P, [A, B])


def test_looking_at_a_mailbox_again_is_no_news() -> None:
    problems, news = _problems()
    problems.awaits(P, [A])
    problems.complete(A)
    problems.complete(A)
    assert news == [P]


def test_a_mailbox_that_is_gone_is_not_waited_for_and_another_of_its_name_is() -> None:
    problems, news = _problems()
    problems.awaits(P, [A])
    problems.forget_mailbox(A)
    assert news == [P]
    problems.complete(A)
    problems.forget_mailbox(A)
    assert problems.awaits(P, [A])


def test_a_placement_that_goes_nowhere_waits_for_nothing() -> None:
    problems, _ = _problems()
    assert not problems.awaits(P, [])
