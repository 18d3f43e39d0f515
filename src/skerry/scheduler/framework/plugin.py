"""The extension points, as protocols: a plugin extends a point by having its method.

Points that answer per target have an optional form for all targets at once. ``filter_all`` and
``score_all`` take row numbers of the table the plugin got with its handle and must answer exactly
what the per-target form would. A plugin without them works, only slower.

**Caching.** Most answers repeat: a thousand replicas ask the same of nodes that hardly change. A
plugin that sets ``scope`` and has ``signature`` promises that all its answers (PreFilter, Filter,
PreScore, Score) for an item depend only on ``signature(item)`` and on what the scope names, and
that ``normalize`` maps equal scores to equal scores. The runner then asks once per signature and
afterwards only for rows that changed. Without the promise the plugin is asked every time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from skerry.scheduler.framework.events import Registration
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Code, Status
from skerry.scheduler.table import Rows

Scores = NDArray[np.int64]
Codes = NDArray[np.int16]

MAX_SCORE = 100

ItemT_contra = TypeVar("ItemT_contra", contravariant=True)
TargetT_contra = TypeVar("TargetT_contra", contravariant=True)


class Scope(IntEnum):
    """What a cacheable plugin's answers depend on, beside the item's signature."""

    # The target itself: labels, taints, capacity.
    TARGET = 1
    # The target and the items placed on it.
    PLACED = 2
    # The descriptions of all targets.
    TARGETS = 3
    # Anything at all: never cached.
    CLUSTER = 4


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a filter says of many rows: 0 passes, k is ``statuses[k - 1]``."""

    codes: Codes
    statuses: Sequence[Status] = ()


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """Which targets are worth a look; None means all of them."""

    names: frozenset[str] | None = None


@dataclass(slots=True)
class Diagnosis:
    """Why an item fits nowhere.

    ``codes`` is by row: 0 says nothing, k is ``kinds[k - 1]``; ``absent`` answers for live rows
    that nobody looked at. Kept as arrays, since an item that does not fit usually fails on every
    target for one of a few reasons.
    """

    total: int = 0
    codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    kinds: list[Status] = field(default_factory=list)
    absent: Status | None = None
    rejectors: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""

    def status_of(self, row: int) -> Status | None:
        """Return why the target of *row* was turned down."""
        code = int(self.codes[row]) if row < len(self.codes) else 0
        return self.kinds[code - 1] if code else self.absent

    def set(self, row: int, status: Status) -> None:
        """Replace what is said of *row*."""
        self.kinds.append(status)
        self.codes[row] = len(self.kinds)

    def set_all(self, rows: Rows, status: Status) -> None:
        """Replace what is said of many rows."""
        if len(rows):
            self.kinds.append(status)
            self.codes[rows] = len(self.kinds)

    def blame(self, status: Status) -> None:
        """Remember whose refusal must change its mind before another attempt makes sense."""
        if not status.plugin:
            return
        if status.code is Code.PENDING:
            self.pending.add(status.plugin)
        elif status.rejected:
            self.rejectors.add(status.plugin)

    def counts(self) -> dict[str, int]:
        """Return how many targets gave each reason; one target may give several."""
        found = np.bincount(self.codes, minlength=len(self.kinds) + 1)
        reasons: dict[str, int] = {}
        for status, count in zip(self.kinds, found[1:].tolist(), strict=True):
            for reason in status.reasons if count else ():
                reasons[reason] = reasons.get(reason, 0) + count
        missing = self.total - int(found[1:].sum())
        if self.absent is not None and missing:
            for reason in self.absent.reasons:
                reasons[reason] = reasons.get(reason, 0) + missing
        return reasons

    def message(self) -> str:
        """Return the familiar text: how many targets there are and why each said no.

        Reasons are sorted as strings, so "10 …" comes before "2 …".
        """
        text = f"0/{self.total} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            listed = sorted(f"{count} {reason}" for reason, count in self.counts().items())
            if listed:
                text += f" {', '.join(listed)}."
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text


# What remains to be done after PostFilter; answers with the name nominated in the end.
Resolve = Callable[[], Awaitable[tuple[str | None, Status | None]]]


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What was found for an item that fits nowhere.

    ``nominated`` is the target being cleared for it; the empty name withdraws an earlier
    nomination, None leaves it alone. Where clearing needs others (victims must be deleted,
    extenders asked) ``resolve`` does that and has the last word.
    """

    nominated: str | None
    resolve: Resolve | None = None


@runtime_checkable
class Plugin(Protocol):
    @property
    def name(self) -> str:
        """Return the name configuration knows the plugin by."""


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol[ItemT_contra]):
    def pre_enqueue(self, item: ItemT_contra) -> Status | None:
        """Let the item into the active queue, or keep it out."""


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol[ItemT_contra]):
    def sort_key(self, item: ItemT_contra) -> Any:
        """Return what orders the active queue; the smallest goes first."""


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol[ItemT_contra]):
    def pre_filter(
        self, state: CycleState, item: ItemT_contra
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Prepare; SKIP leaves this plugin's Filter out of the attempt."""


@runtime_checkable
class PreFilterExtensions(Protocol[ItemT_contra, TargetT_contra]):
    """For plugins whose prepared state depends on what is placed where."""

    def add_item(
        self, state: CycleState, item: ItemT_contra, added: ItemT_contra, target: TargetT_contra
    ) -> Status | None:
        """Account for *added* being on *target*."""

    def remove_item(
        self, state: CycleState, item: ItemT_contra, removed: ItemT_contra, target: TargetT_contra
    ) -> Status | None:
        """Account for *removed* being gone from *target*."""


@runtime_checkable
class FilterPlugin(Plugin, Protocol[ItemT_contra, TargetT_contra]):
    def filter(
        self, state: CycleState, item: ItemT_contra, target: TargetT_contra
    ) -> Status | None:
        """Say whether the item can go there."""


@runtime_checkable
class ArrayFilterPlugin(Plugin, Protocol[ItemT_contra]):
    def filter_all(self, state: CycleState, item: ItemT_contra, rows: Rows) -> Verdicts | None:
        """Answer ``filter`` for all *rows*; None passes them all."""


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol[ItemT_contra]):
    def post_filter(
        self, state: CycleState, item: ItemT_contra, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Try to make room."""


@runtime_checkable
class PreScorePlugin(Plugin, Protocol[ItemT_contra]):
    def pre_score(self, state: CycleState, item: ItemT_contra, rows: Rows) -> Status | None:
        """Prepare for scoring the feasible *rows*; SKIP leaves this plugin's Score out."""


@runtime_checkable
class ScorePlugin(Plugin, Protocol[ItemT_contra, TargetT_contra]):
    def score(self, state: CycleState, item: ItemT_contra, target: TargetT_contra) -> int:
        """Rate the target; between 0 and 100 unless ``normalize`` brings it there."""


@runtime_checkable
class ArrayScorePlugin(Plugin, Protocol[ItemT_contra]):
    def score_all(self, state: CycleState, item: ItemT_contra, rows: Rows) -> Scores:
        """Answer ``score`` for all *rows*."""


@runtime_checkable
class NormalizePlugin(Plugin, Protocol[ItemT_contra]):
    def normalize(
        self, state: CycleState, item: ItemT_contra, scores: Scores, rows: Rows
    ) -> Scores:
        """Bring the raw scores of all feasible targets into 0 to 100."""


@runtime_checkable
class ReservePlugin(Plugin, Protocol[ItemT_contra]):
    def reserve(self, state: CycleState, item: ItemT_contra, target: str) -> Status | None:
        """Take what the item will need there."""

    def unreserve(self, state: CycleState, item: ItemT_contra, target: str) -> None:
        """Give it back; must be idempotent, it is called even if ``reserve`` was not."""


@runtime_checkable
class PermitPlugin(Plugin, Protocol[ItemT_contra]):
    def permit(
        self, state: CycleState, item: ItemT_contra, target: str
    ) -> tuple[Status | None, float]:
        """Allow, refuse, or WAIT with a time limit in seconds."""


@runtime_checkable
class PreBindPlugin(Plugin, Protocol[ItemT_contra]):
    async def pre_bind(self, state: CycleState, item: ItemT_contra, target: str) -> Status | None:
        """Do what must be done before the binding is written."""


@runtime_checkable
class BindPlugin(Plugin, Protocol[ItemT_contra]):
    async def bind(self, state: CycleState, item: ItemT_contra, target: str) -> Status | None:
        """Write the binding; SKIP leaves it to the next plugin."""


@runtime_checkable
class PostBindPlugin(Plugin, Protocol[ItemT_contra]):
    def post_bind(self, state: CycleState, item: ItemT_contra, target: str) -> None:
        """Hear that the binding was written."""


@runtime_checkable
class EnqueuePlugin(Plugin, Protocol):
    def events_to_register(self) -> Sequence[Registration]:
        """Return the events after which a rejected item may be worth another attempt."""


@runtime_checkable
class CacheablePlugin(Plugin, Protocol[ItemT_contra]):
    @property
    def scope(self) -> Scope:
        """Return what answers depend on beside the signature."""

    def signature(self, item: ItemT_contra) -> Hashable:
        """Return everything about the item that answers depend on."""


# ``factory(args, handle)``; args are the plugin's configuration, already defaulted.
Factory = Callable[[Mapping[str, Any], Any], Plugin]


_EXTENDS: dict[tuple[type[Any], Any], bool] = {}


def extends(plugin: object, protocol: Any) -> bool:
    """Tell whether a plugin extends a point, as ``isinstance`` does but at once.

    Asking a runtime protocol walks its members every time; which methods a class has never
    changes.
    """
    key = (type(plugin), protocol)
    known = _EXTENDS.get(key)
    if known is None:
        known = _EXTENDS[key] = isinstance(plugin, protocol)
    return known
