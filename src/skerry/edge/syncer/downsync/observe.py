"""One object's rows of ``wanted``, ``present`` and ``recorded``, and what they are worth.

``present`` has three sources, and the newest counts. The answer to our own last write comes first:
until the watch has shown it, an older state would make the next decision undo or repeat that write.
Then the watch, once it has read the place completely. A record that is only an intent is the
exception: the apply may have reached the edge and its answer not us, and a watch that lags would
have us believe that nothing is there. Then, as before the watch is complete, the edge is asked.

    the answer to our last write   until the watch shows that write, for some time at most
    the watch                      once it has read the place, and no answer is overdue
    the edge itself                else; and where an intent is recorded and the watch shows nothing

Nothing is asked about objects that do not concern us: neither placed by us nor wanted within the
scope. We may have no right to read them.
"""

from __future__ import annotations

from dataclasses import replace

from skerry.api.errors import Forbidden, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.downsync.containers import others_inside
from skerry.edge.syncer.state import SyncerState
from skerry.logic.fleet.syncing.difference import Observed, needs_inspection
from skerry.logic.fleet.syncing.outcome import SyncOutcome, refused
from skerry.logic.fleet.syncing.present import present
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.fleet.syncing.wanted import Desired, goes_down, wanted


class DownsyncObserver:
    """Reads what matters about one object that goes down, or went."""

    def __init__(self, state: SyncerState) -> None:
        self._s = state

    async def observe(self, ref: ObjectRef) -> Observed:
        """Return what ``difference`` needs; asks the edge only where its watch cannot tell."""
        s = self._s
        gvr = s.version_of(ref)
        evidence = s.evidence(ref.group_resource)
        if gvr is None or not self._concerns_us(ref):
            return Observed(ref, None, False, None, None, evidence)
        record = s.records.placed(ref)
        row = wanted(ref.group_resource, gvr.version, s.mailbox.get(ref))
        served = not s.edge_types.known or s.edge_types.find(gvr) is not None
        live: Object | None = None
        unreadable: SyncOutcome | None = None
        if served:
            try:
                live = await self._live(gvr, ref, record)
            except Forbidden as error:
                unreadable = refused(error, "get", ref)
        observed = Observed(
            ref=ref,
            wanted=row,
            covered=s.config.scope.covers(ref),
            live=live,
            record=record,
            evidence=evidence,
            served=served,
            unreadable=unreadable,
            immutable=self._is_refused(ref, row, record),
            released_uid=s.records.released_uid(ref),
            budget=s.budget.of(ref),
            settling_seconds=s.edge_writes.settling_seconds(ref),
        )
        if needs_inspection(observed):
            return replace(observed, in_use=await others_inside(s, ref, record))
        return observed

    def _concerns_us(self, ref: ObjectRef) -> bool:
        """Tell whether the edge is to be looked at for *ref* at all; we may not be allowed to."""
        if self._s.records.was_placed(ref):
            return True
        obj = self._s.mailbox.get(ref)
        return self._s.config.scope.covers(ref) and (
            obj is None or goes_down(ref.group_resource, obj)
        )

    async def _live(
        self, gvr: GroupVersionResource, ref: ObjectRef, record: DownsyncRecord | None
    ) -> Object | None:
        """Return the row of ``present``: the newest of watch, answer and a look of our own."""
        cache, writes = self._s.edge_cache, self._s.edge_writes
        answer = writes.answer(ref)
        if answer is not None:
            return answer
        if not writes.is_overdue(ref) and cache.known(gvr, ref):
            seen = cache.get(gvr, ref)
            if seen is not None or record is None or not record.is_intent:
                return seen
        # A watch may lag behind what an apply without an answer has done: look for ourselves.
        try:
            return present(await self._s.edge.get(gvr, ref.name, ref.namespace))
        except NotFound:
            return None

    def _is_refused(
        self, ref: ObjectRef, row: Desired | None, record: DownsyncRecord | None
    ) -> bool:
        """Tell whether what is to be applied was refused before for an immutable field."""
        if not self._s.edge_writes.is_refused(ref):
            return False
        content = row or (record.desired if record else None)
        return content is not None and self._s.edge_writes.refused(ref, content.digest)
