"""The steps an object takes to an edge, and what was found at each of them.

Each step is about one table of the chain (``logic.fleet.tables.chain``): a step that does not hold
is a row that is missing there, and its reason is why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from skerry.api.refs import ObjectRef

Step = Literal[
    "category",
    "selection",
    "location",
    "grant",
    "revision",
    "customization",
    "mailbox",
    "copy",
    "edge",
    "applied",
    "health",
]


# The table whose row a step looks for; in the order of steps.
TABLES: Final[Mapping[Step, str]] = {
    "category": "selected",
    "selection": "selected",
    "location": "destination",
    "grant": "route",
    "revision": "revisions",
    "customization": "desired",
    "mailbox": "mailboxes",
    "copy": "copies",
    "edge": "leases",
    "applied": "report",
    "health": "report",
}


def object_json(ref: ObjectRef) -> dict[str, str]:
    """Return how answers name an object; its workspace is the placement's, and not repeated."""
    return {
        "group": ref.group,
        "resource": ref.resource,
        "namespace": ref.namespace,
        "name": ref.name,
    }


@dataclass(frozen=True, slots=True)
class Link:
    """One step. ``holds`` None: it is not known. ``edit``: what would turn the answer around."""

    step: Step
    holds: bool | None
    reason: str = ""
    messages: tuple[str, ...] = ()
    edit: str = ""

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "step": self.step,
            "table": TABLES[self.step],
            "holds": self.holds,
        }
        if self.reason:
            found["reason"] = self.reason
        if self.messages:
            found["messages"] = list(self.messages)
        if self.edit:
            found["edit"] = self.edit
        return found


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps in the order an object takes them; those after a broken one are not known."""

    links: tuple[Link, ...]

    @property
    def broken(self) -> Link | None:
        """The first step that does not hold, or is not known to."""
        return next((link for link in self.links if link.holds is not True), None)

    @property
    def outcome(self) -> str:
        """One word: the reason of the broken step, or ``Healthy``."""
        broken = self.broken
        return "Healthy" if broken is None else broken.reason

    @property
    def delivered(self) -> bool:
        """Whether the object stands at the edge as it is now, healthy or not."""
        return any(link.step == "applied" and link.holds for link in self.links)

    def as_json(self) -> dict[str, Any]:
        return {"outcome": self.outcome, "links": [link.as_json() for link in self.links]}


def followed(links: Iterator[Link]) -> Chain:
    """Return the chain of *links*, asked for one by one until one does not hold."""
    found: list[Link] = []
    for link in links:
        found.append(link)
        if link.holds is not True:
            break
    return Chain(tuple(found))
