"""What a decision about one placement is made from, as frozen values.

``observe`` fills them, ``decide`` and the parts it is made of (``guards``, ``rollout_plan``,
``history``) read them, and nobody changes them. What a placement without guards, history or Rollout
has nothing of is None, and costs nothing.

Each part answers the one before it with an ``Observed`` in which less or more is wanted: guards
keep destinations that nobody wants, a Rollout lets those go in its own time. So ``destinations``
means "what slices are to hold as far as has been decided".

Some fields are functions (``why_joined``, ``goes``): the answer is wanted for a few of ten thousand
destinations, and which ones is known only when the decision is made. They read the index as it is
at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from skerry.api.edge import SliceOwner
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.guards.budget import Rule
from skerry.logic.fleet.history.difference import Why
from skerry.logic.fleet.history.observations import Seen
from skerry.logic.fleet.placement.destination import Chosen
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.rollout.spec import RolloutSpec
from skerry.logic.fleet.rollout.state import OPEN, Gate, Revision
from skerry.logic.fleet.rollout.waves import Labels
from skerry.logic.machinery.plan import Action

CREATED = "created"


class Cause(NamedTuple):
    """The object whose event enqueued a placement, and what is known of its change.

    ``initial``: it was there when we started, so it changed nothing.
    """

    kind: str
    ref: ObjectRef
    change: str = ""
    resource_version: str = ""
    changed_by: str = ""
    uid: str = ""
    initial: bool = False


class Gathered(NamedTuple):
    """The causes of a reconcile: the last of them, newest first, and how many there were."""

    known: tuple[Cause, ...] = ()
    total: int = 0

    @property
    def newest(self) -> Cause | None:
        return self.known[0] if self.known else None


NO_CAUSE = Gathered()


@dataclass(frozen=True, slots=True)
class Result:
    """What was found for a placement, at one generation of it."""

    generation: int
    matching: int = 0
    chosen: int = 0
    destinations: int = 0
    errors: tuple[str, ...] = ()
    unsatisfiable: tuple[str, ...] = ()
    wanted_locations: int | None = None
    # Why a strategy found fewer than that.
    shortage: str = ""
    broken_locations: tuple[str, ...] = ()
    consent: Consent | None = None


@dataclass(frozen=True, slots=True)
class Consent:
    """What grants have to do with a placement: numbers of Locations, and who refuses them.

    ``held`` are some of those ``refused``. ``observed`` would be refused if grants enforced.
    """

    refused: int = 0
    held: int = 0
    observed: int = 0
    refusing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gone:
    """A placement that is no more, and what is to be written all the same."""

    ref: ObjectRef
    causes: Gathered = NO_CAUSE
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """A placement that is being deleted, and that nothing of ours keeps: others' finalizers do."""

    ref: ObjectRef


@dataclass(frozen=True, slots=True)
class Guarded:
    """What guards have to know of one placement, at one moment.

    ``departing`` are in the slices and not wanted; of those ``exempt`` go whatever guards say, and
    ``frozen`` stay until a freeze ends. ``barred`` are wanted, and may not join before that.
    """

    placement: Object
    rules: tuple[Rule, ...]
    now: datetime
    present: int = 0
    departing: tuple[Destination, ...] = ()
    exempt: frozenset[Destination] = frozenset()
    frozen: frozenset[Destination] = frozenset()
    barred: frozenset[Destination] = frozenset()
    until: datetime | None = None
    protected: Mapping[Destination, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedRollout:
    """One Rollout, and everything besides destinations that it is decided from."""

    object: Object
    spec: RolloutSpec
    revisions: Mapping[int, Revision]
    names: Mapping[int, str]
    live: int
    now: datetime
    quiet_seconds: float
    approvals: Mapping[str, Object] = field(default_factory=dict)
    gate: Gate = OPEN
    # Labels of the Locations of destinations, and until when content is frozen there.
    labels: Mapping[Destination, Labels] = field(default_factory=dict)
    frozen: Mapping[Destination, datetime] = field(default_factory=dict)
    # Whether a destination that nobody wants goes at once, whatever the pace: nothing is there, or
    # the inventory's owner has taken it back. Given the Locations that refuse the placement.
    goes: Callable[[Destination, Iterable[ObjectRef]], bool] = lambda *_: False


@dataclass(frozen=True, slots=True)
class Recording:
    """What the decisions about one placement are recorded with.

    ``destination`` says whom a member stands for; the others say why, asked of the index as it is
    when the decision is made.
    """

    generation: int
    resource_version: str
    changed_by: str
    destination: Callable[[int], Destination | None]
    why_joined: Why
    why_left: Why
    # What of its Rollout was recorded, and how many seconds ago; None: nothing is known of that.
    seen: tuple[Seen, float] | None = None
    # The hold that a person confirmed last, and that was recorded.
    released: str = ""
    # Whether the hub itself says who changed an object.
    verified: bool = True


@dataclass(frozen=True, slots=True)
class Observed:
    """One placement: its destinations, and the slices that are thought to be its own."""

    ref: ObjectRef
    owner: SliceOwner
    result: Result
    destinations: tuple[Destination, ...] = ()
    # As the cache keeps them (``lean_slice``), by name.
    slices: Mapping[str, Object] = field(default_factory=dict)
    # Names that its slices may have, in order.
    page_names: tuple[str, ...] = ()
    causes: Gathered = NO_CAUSE
    # The Locations that its strategy chose; None without one.
    chosen: frozenset[ObjectRef] | None = None
    # What grants have to do with it, and the Locations that refuse it; where there are grants.
    found: Chosen | None = None
    refused: tuple[ObjectRef, ...] = ()
    # Whether what the slices hold is to be remembered, because some Location refuses it.
    tracked: bool = False
    # What guards have to know of it; None where none of them has a say.
    guarded: Guarded | None = None
    # What to record decisions with; None where none are recorded.
    history: Recording | None = None
    # The placement itself, where it is to be taken away wave by wave one day, or is by now.
    staged: Object | None = None
    # Its Rollout; None without one.
    rollout: ObservedRollout | None = None


Observation = Observed | Gone | Kept
