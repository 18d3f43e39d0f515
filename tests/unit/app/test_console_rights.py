"""Rights that a console has to ask for: never guessed, and never believed once they changed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.app.console_link import Asked, Replies
from skerry.app.console_rights import LearnedRights
from skerry.server.user import User
from skerry.web.eyes import Unlearned

ALICE, BOB = User("alice"), User("bob")


@dataclass
class Answering:
    """A hub: who may where, and what it was asked."""

    allowed: set[tuple[str, str]] = field(default_factory=set)
    version: int = 0
    asked: list[Asked] = field(default_factory=list)
    busy: int = 0
    # Happens while the hub answers.
    meanwhile: int = 0

    async def ask(self, asked: Asked) -> Replies | None:
        self.asked.append(asked)
        if self.busy:
            self.busy -= 1
            return None
        rights = [(user.name, cluster) in self.allowed for user, cluster, *_ in asked.rights]
        self.version += self.meanwhile
        self.meanwhile = 0
        paths = [f"root:{each}" for each in asked.clusters]
        return Replies(rights, paths, [each.rpartition(":")[2] or None for each in asked.paths])

    def change(self, *allowed: tuple[str, str]) -> None:
        self.allowed = set(allowed)
        self.version += 1


async def may(rights: LearnedRights, user: User, *clusters: str) -> list[bool]:
    seen = rights.rights()

    def made() -> list[bool]:
        found, unknown = [], False
        for each in clusters:
            try:
                found.append(seen.may(user, each, "list", SYNC_TARGETS))
            except Unlearned:
                unknown = True
        if unknown:
            raise Unlearned
        return found

    return await seen.settled(made)


async def test_what_is_not_known_is_asked_once_and_together() -> None:
    hub = Answering({("alice", "a")})
    rights = LearnedRights(hub.ask, lambda: hub.version)
    assert await may(rights, ALICE, "a", "b") == [True, False]
    assert await may(rights, ALICE, "b", "a") == [False, True]
    (asked,) = hub.asked
    assert len(asked.rights) == 2
    # Where a workspace is comes with whether somebody may enter it.
    assert rights.rights().path_of("a") == "root:a"


async def test_a_right_that_changed_is_asked_anew_with_all_that_its_viewer_asked() -> None:
    hub = Answering({("alice", "a"), ("alice", "b")})
    rights = LearnedRights(hub.ask, lambda: hub.version)
    assert await may(rights, ALICE, "a", "b") == [True, True]
    assert await may(rights, BOB, "a") == [False]
    hub.change(("bob", "a"))
    with pytest.raises(Unlearned):
        rights.rights().may(ALICE, "a", "list", SYNC_TARGETS)
    await rights.learn()
    assert {(each[0].name, each[1]) for each in hub.asked[-1].rights} == {
        ("alice", "a"),
        ("alice", "b"),
    }
    assert await may(rights, ALICE, "a", "b") == [False, False]
    assert await may(rights, BOB, "a") == [True]


async def test_an_answer_of_the_moment_before_is_not_believed() -> None:
    hub = Answering({("alice", "a")}, meanwhile=1)
    rights = LearnedRights(hub.ask, lambda: hub.version)
    assert await may(rights, ALICE, "a") == [True]
    assert len(hub.asked) == 2


async def test_a_hub_that_is_too_busy_is_asked_again() -> None:
    hub = Answering({("alice", "a")}, busy=1)
    rights = LearnedRights(hub.ask, lambda: hub.version)
    assert await may(rights, ALICE, "a") == [True]


async def test_paths_are_resolved_and_so_is_that_there_is_none() -> None:
    hub = Answering()
    seen = LearnedRights(hub.ask, lambda: hub.version).rights()
    assert await seen.settled(lambda: seen.resolve("root:a")) == "a"
    assert await seen.settled(lambda: seen.resolve("root:")) is None
    assert await seen.settled(lambda: seen.path_of("b")) == "root:b"
    assert len(hub.asked) == 3


async def test_who_asks_more_than_is_kept_is_answered_and_does_not_ask_for_ever() -> None:
    hub = Answering({("alice", f"c{number}") for number in range(0, 20, 2)})
    rights = LearnedRights(hub.ask, lambda: hub.version, max_known=5)
    clusters = [f"c{number}" for number in range(20)]
    for _ in range(3):
        assert await may(rights, ALICE, *clusters) == [True, False] * 10
    assert len(hub.asked) == 1
    # What is too much is forgotten when somebody asks for more.
    assert await may(rights, BOB, "c1") == [False]
    assert await may(rights, ALICE, "c2") == [True]
    assert len(hub.asked) == 3
