"""One summary: as it is, and as the copies say it should be."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.summarizer.board import Board
from skerry.controllers.summarizer.keys import Pace
from skerry.controllers.summarizer.kinds import Kinds
from skerry.controllers.summarizer.names import Cause
from skerry.logic.fleet.summary.accumulator import Accumulator, Totals
from skerry.logic.fleet.summary.content import MAX_DETAILS, Subject
from skerry.logic.fleet.summary.ledger import Source
from skerry.logic.fleet.summary.report import digest_of
from skerry.logic.fleet.summary.selection import comes_back
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a summary should say, and on whose behalf."""

    ref: ObjectRef
    owner_uid: str
    subject: Subject
    totals: Totals


@dataclass(frozen=True, slots=True)
class Returned:
    """A source object as it is, and the status its only destination reports."""

    gvr: GroupVersionResource
    source: Object
    status: Object


@dataclass(frozen=True, slots=True)
class Observed:
    """``wanted`` None: the summary has no cause. ``existing`` None: it is not there."""

    key: Key
    existing: Object | None
    wanted: Wanted | None
    returned: Returned | None = None


class Observer:
    """Looks at one summary at a time."""

    def __init__(
        self,
        board: Board,
        kinds: Kinds,
        summaries: Informer,
        cluster_summaries: Informer,
        client: Client,
        pace: Pace[Key],
    ) -> None:
        self._board = board
        self._kinds = kinds
        self._summaries = summaries
        self._cluster_summaries = cluster_summaries
        self._client = client
        self._pace = pace

    async def observe(self, key: Key) -> Observed | None:
        """Return what is to be compared; None when there is nothing to do, or not yet."""
        cause = self._board.names.cause(key)
        if not self._is_readable(key, cause):
            self._kinds.call_again(key.cluster, key, lambda: self._pace.wake(key))
            return None
        self._pace.looking(key)
        held = self._summaries if key.namespace else self._cluster_summaries
        existing = held.index.get(key)
        wanted = None if cause is None else self._wanted(cause)
        if cause is None or wanted is None:
            return None if existing is None else Observed(key, existing, None)
        return Observed(key, existing, wanted, await self._returned(cause))

    def _is_readable(self, key: Key, cause: Cause | None) -> bool:
        """Tell whether enough has been read: of the object's kind, or to know it has gone."""
        if cause is None:
            return self._kinds.is_settled(key.cluster)
        return self._kinds.is_readable(key.cluster, cause.item.group_resource)

    def _wanted(self, cause: Cause) -> Wanted | None:
        ref, item = cause
        owner = self._board.owners.get(ref)
        tally, source = self._found(cause)
        if owner is None or tally is None or source is None:
            return None
        subject = Subject(
            item.group, source.version, item.resource, source.kind, item.namespace, item.name
        )
        return Wanted(ref, owner.uid, subject, tally.totals(MAX_DETAILS))

    def _found(self, cause: Cause) -> tuple[Accumulator | None, Source | None]:
        ledger = self._board.ledger
        return (
            ledger.tally(cause.ref, cause.item),
            ledger.source(cause.ref.cluster, cause.item),
        )

    async def _returned(self, cause: Cause) -> Returned | None:
        """Return the status to give back; None where none is asked for or it is there already."""
        ref, item = cause
        owner = self._board.owners.get(ref)
        tally, source = self._found(cause)
        if owner is None or not owner.singleton or tally is None or source is None:
            return None
        if not comes_back(item.group_resource):
            return None
        details = list(tally.details())
        if len(details) != 1 or details[0].report.digest in ("", source.digest):
            return None
        gvr = GroupVersionResource(item.group, source.version, item.resource)
        mailbox = self._board.mailbox_cluster(details[0].destination.uid)
        copy = await self._read(mailbox, gvr, item.name, item.namespace)
        live = await self._read(ref.cluster, gvr, item.name, item.namespace)
        status = (copy or {}).get("status")
        if not status or live is None or digest_of(live.get("status")) == digest_of(status):
            return None
        return Returned(gvr, live, status)

    async def _read(
        self, cluster: str, gvr: GroupVersionResource, name: str, namespace: str
    ) -> Object | None:
        if not cluster:
            return None
        try:
            return await self._client.for_cluster(cluster).get(gvr, name, namespace)
        except NotFound:
            return None
