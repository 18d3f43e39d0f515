"""What a tab can look at and ask for: by name, each with its own module."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from skerry.api.errors import BadRequest
from skerry.server.user import User
from skerry.web.terminal import TabTerminal


class Subscription(Protocol):
    """One thing that a tab looks at."""

    def version(self) -> object:
        """Return what differs whenever ``content`` may; cheap, and asked several times a second."""

    def content(self) -> Mapping[str, Any]:
        """Return all that is to be seen now."""

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what makes the content *before* the content *after*; empty when they are equal."""

    def close(self) -> None:
        """Let go of whatever was kept for it."""


# Returns what is made, once all that making it asks about rights is known.
Settled = Callable[[Callable[[], Any]], Awaitable[Any]]
# What the hello says of the hub.
Facts = Callable[[], Awaitable[Mapping[str, Any]]]
# Opens what somebody may see of a view; raises an ApiError for a view that there cannot be.
Opening = Callable[[User, Mapping[str, Any]], Awaitable[Subscription]]
Question = Callable[[User, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
# Runs in a terminal until it ends, and returns its exit code; raises an ApiError where it cannot.
Program = Callable[[User, Mapping[str, Any], TabTerminal], Awaitable[int]]


async def _no_facts() -> Mapping[str, Any]:
    return {}


async def _at_once(make: Callable[[], Any]) -> Any:
    return make()


def _unchanging() -> object:
    return None


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything a tab can be shown, and every question it may ask."""

    openings: Mapping[str, Opening] = field(default_factory=dict)
    questions: Mapping[str, Question] = field(default_factory=dict)
    programs: Mapping[str, Program] = field(default_factory=dict)
    # What the hello says besides protocol and user.
    facts: Facts = _no_facts
    settled: Settled = _at_once
    # Differs whenever somebody's rights may.
    rights: Callable[[], object] = _unchanging

    def opening(self, kind: str) -> Opening:
        """Return what opens *kind*."""
        found = self.openings.get(kind)
        if found is None:
            raise BadRequest(f"sub: no view is called {kind!r}; there are {_listed(self.openings)}")
        return found

    def question(self, kind: str) -> Question:
        """Return what answers *kind*."""
        found = self.questions.get(kind)
        if found is None:
            raise BadRequest(
                f"ask: no question is called {kind!r}; there are {_listed(self.questions)}"
            )
        return found

    def program(self, kind: str) -> Program:
        """Return what runs as *kind*."""
        found = self.programs.get(kind)
        if found is None:
            raise BadRequest(
                f"run: no program is called {kind!r}; there are {_listed(self.programs)}"
            )
        return found


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "none"


def members_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what differs in *after* from *before*, by member; null for what is gone."""
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return {**changed, **{key: None for key in before if key not in after}}
