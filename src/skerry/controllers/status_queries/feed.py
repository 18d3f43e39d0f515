"""What is asked of the status feed, which ``app`` hands in.

Other controllers read the same feed; none of them is known here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.summary.tables import SummaryTables
from skerry.logic.fleet.tables.completeness import Scope
from skerry.logic.fleet.tables.flow import Settled
from skerry.runtime.client import Selection
from skerry.runtime.informer import Informer


class WatchedKind(Protocol):
    """A type that is watched."""

    @property
    def group(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def group_resource(self) -> GroupResource: ...

    def item(self, obj: Object) -> ObjectRef:
        """Return who an object of the kind is, in whichever cluster."""

    def project(self, obj: Object) -> Object:
        """Return what is kept of an object of the kind anyway."""


Extraction = Callable[[WatchedKind, Object, Object], Any]


class FeedFollower(Protocol):
    """Who is notified of what the feed takes in."""

    def object_put(self, kind: WatchedKind, item: ObjectRef, uid: str, obj: Object) -> None: ...

    def object_dropped(self, kind: WatchedKind, item: ObjectRef, uid: str) -> None: ...

    def settled(self, settled: Settled) -> None: ...

    def placement_put(self, placement: ObjectRef, obj: Object | None) -> None: ...


class FeedInputs(Protocol):
    """The tables, and the roles of clusters."""

    @property
    def tables(self) -> SummaryTables: ...

    def follow(self, follower: FeedFollower) -> None: ...

    def when_read(self, notify: Callable[[ClusterName], None]) -> None: ...

    def mailbox_uid(self, cluster: ClusterName) -> str: ...

    def is_workload(self, cluster: ClusterName) -> bool: ...


class FeedWatches(Protocol):
    """Which kinds are watched, and what has been read of them."""

    def extract(self, kind: GroupResource, extraction: Extraction | None) -> None: ...

    def reread(
        self, kind: GroupResource, selection: Selection
    ) -> AsyncIterator[tuple[WatchedKind, Sequence[Object]]]: ...

    async def wait_read(self, kind: GroupResource) -> None: ...

    def missing(self, cluster: ClusterName, kind: GroupResource) -> Scope | None: ...

    def is_served(self, cluster: ClusterName, kind: GroupResource) -> bool: ...

    def is_watched(self, kind: GroupResource) -> bool: ...

    def is_followed(self, kind: GroupResource) -> bool: ...

    def revision(self, kind: GroupResource) -> int: ...


class Feed(Protocol):
    """The status feed."""

    @property
    def inputs(self) -> FeedInputs: ...

    @property
    def watches(self) -> FeedWatches: ...

    @property
    def placements(self) -> Informer: ...

    @property
    def informers(self) -> list[Informer]: ...

    def park(self, queue: str, key: tuple[str, ...], scope: Scope) -> None: ...

    def on_parked(self, queue: str, enqueue: Callable[[tuple[str, ...]], None]) -> None: ...

    async def run(self) -> None: ...
