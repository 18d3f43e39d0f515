"""One row per edge and per placement: what the hub says of it, and the sentence to begin with.

An edge has one state, the worst of those that apply, since a row has room for one. ``Lost`` goes
before everything: what else a lost edge said was true when it was last heard of, and is no reason
to look now. What waits for a person (``Held``) goes before what a person has to find out about
first (``Refused``, ``Unhealthy``), and what needs time alone (``Syncing``) is no problem at all. An
edge that was never heard of has not joined; its missing heartbeat tells it from a lost one, and not
its condition, which is False for both.

Status is read as the API has it, from a hub that may be of another version: what is missing or of
another type was not said, and is shown as a dash and never as zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from skerry.api.edge import HEALTHY, NOT_DELIVERED, UNHEALTHY
from skerry.api.objects import Raw, section_of
from skerry.api.refs import CLUSTER_ANNOTATION, ClusterName
from skerry.kit.text import one_line
from skerry.logic.machinery.printing.durations import parse_time

Status = Literal["True", "False", "Unknown"]
EdgeState = Literal["Lost", "Held", "Refused", "Unhealthy", "Syncing", "NotJoined", "Ready"]

# The worst first: what is lost may be anything, what is held waits for a person.
EDGE_STATES: Final[tuple[EdgeState, ...]] = (
    "Lost",
    "Held",
    "Refused",
    "Unhealthy",
    "Syncing",
    "NotJoined",
    "Ready",
)
_EDGE_RANK: Final = {state: rank for rank, state in enumerate(EDGE_STATES)}
# Of these nobody has to do anything.
_EDGE_QUIET: Final = frozenset(("Syncing", "NotJoined", "Ready"))
_STATUS_RANK: Final = {"False": 0, "Unknown": 1, "True": 2}
# A condition's message may have 32768 characters; a row has one line.
_MAX_PROBLEM: Final = 300
_NOT_JUDGED: Final = "the controllers have not judged it yet"


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """An edge: its SyncTarget's name and cluster, and how it stands.

    Numbers are None where its syncer has not reported them.
    """

    cluster: ClusterName
    name: str
    state: EdgeState
    heard: datetime | None = None
    version: str = ""
    wanted: int | None = None
    applied: int | None = None
    unhealthy: int | None = None
    held: int = 0
    problem: str = ""

    @property
    def key(self) -> tuple[ClusterName, str]:
        """What tells it from any other."""
        return self.cluster, self.name

    @property
    def is_problem(self) -> bool:
        """Whether somebody should look."""
        return self.state not in _EDGE_QUIET

    def order(self) -> tuple[int, int, int, str, str]:
        """Return where it stands among others: the worst first, then by name."""
        return (
            _EDGE_RANK[self.state],
            -self.held,
            -(self.unhealthy or 0),
            self.name,
            self.cluster,
        )


@dataclass(frozen=True, slots=True)
class PlacementRow:
    """An EdgePlacement and what it came to; counts are of destinations."""

    cluster: ClusterName
    name: str
    ready: Status
    destinations: int = 0
    delivered: int | None = None
    healthy: int | None = None
    unhealthy: int | None = None
    unknown: int | None = None
    held: bool = False
    problem: str = ""

    @property
    def key(self) -> tuple[ClusterName, str]:
        """What tells it from any other."""
        return self.cluster, self.name

    @property
    def is_problem(self) -> bool:
        """Whether somebody should look: it is not ready, or part of it cannot be seen."""
        return self.ready != "True" or bool(self.unknown)

    def order(self) -> tuple[int, int, int, str, str]:
        """Return where it stands among others: the worst first, then by name."""
        return (
            _STATUS_RANK[self.ready],
            -(self.unhealthy or 0),
            -(self.unknown or 0),
            self.name,
            self.cluster,
        )


def edge_row(obj: Raw) -> EdgeRow:
    """Read a SyncTarget."""
    status = section_of(obj, "status")
    found = _conditions(status)
    objects = section_of(status, "objects")
    heard = parse_time(status.get("lastSyncerHeartbeatTime"))
    state, problem = _edge_state(found, objects, heard)
    return EdgeRow(
        *row_key(obj),
        state,
        heard,
        str(status.get("syncerVersion") or ""),
        _count(objects, "wanted"),
        _count(objects, "applied"),
        _count(objects, "unhealthy"),
        _count(objects, "held") or 0,
        problem,
    )


def _edge_state(
    found: Mapping[str, Raw], objects: Raw, heard: datetime | None
) -> tuple[EdgeState, str]:
    ready = found.get("Ready", {})
    if ready.get("status") != "True":
        # Said of a SyncTarget nobody was ever heard of, too.
        return ("Lost" if heard else "NotJoined"), _problem(ready) or _NOT_JUDGED
    if found.get("Held", {}).get("status") == "True":
        return "Held", _problem(found["Held"])
    if found.get("ObjectsRefused", {}).get("status") == "True":
        return "Refused", _problem(found["ObjectsRefused"])
    unhealthy, wanted = _count(objects, "unhealthy"), _count(objects, "wanted")
    if unhealthy:
        return "Unhealthy", f"{unhealthy} of {wanted} objects are unhealthy"
    applied = _count(objects, "applied")
    if wanted is not None and applied is not None and applied < wanted:
        return "Syncing", f"{wanted - applied} of {wanted} objects are not applied yet"
    return "Ready", ""


def placement_row(obj: Raw) -> PlacementRow:
    """Read an EdgePlacement."""
    status = section_of(obj, "status")
    found = _conditions(status)
    ready = found.get("Ready", {})
    said = ready.get("status")
    unknown = _count(status, "unknownDestinations")
    problem = ""
    if said != "True":
        problem = _problem(_cause(ready, found.get(HEALTHY, {}))) or _NOT_JUDGED
    elif unknown:
        # Lost edges hold nothing back, but they are not well either.
        problem = _problem(found.get("Delivered", {}))
    return PlacementRow(
        *row_key(obj),
        said if said in ("True", "False") else "Unknown",
        _count(status, "destinationCount") or 0,
        _count(status, "deliveredDestinations"),
        _count(status, "healthyDestinations"),
        _count(status, "unhealthyDestinations"),
        unknown,
        found.get("Held", {}).get("status") == "True",
        problem,
    )


def _cause(ready: Raw, healthy: Raw) -> Raw:
    """Return the condition that says most of why a placement is not ready.

    What cannot be applied stays "not yet delivered" for ever; why is said where it is unhealthy.
    """
    undelivered = ready.get("reason") == NOT_DELIVERED
    return healthy if undelivered and healthy.get("reason") == UNHEALTHY else ready


def row_key(obj: Raw) -> tuple[ClusterName, str]:
    """Return the key of an object's row."""
    metadata = obj["metadata"]
    return (metadata.get("annotations") or {}).get(CLUSTER_ANNOTATION, ""), metadata["name"]


def _conditions(status: Raw) -> dict[str, Raw]:
    return {str(each.get("type")): each for each in status.get("conditions") or ()}


def _problem(condition: Raw) -> str:
    """Return a condition in one line."""
    message = one_line(str(condition.get("message") or condition.get("reason") or ""))
    return message if len(message) <= _MAX_PROBLEM else f"{message[: _MAX_PROBLEM - 1]}…"


def _count(obj: Raw, name: str) -> int | None:
    found = obj.get(name)
    return found if isinstance(found, int) else None
