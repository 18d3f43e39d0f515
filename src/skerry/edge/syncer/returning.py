"""The way back: statuses and marks, written in the mailbox, gathered so that bursts are one."""

from __future__ import annotations

from skerry.api.edge import EDGE_FIELD_MANAGER
from skerry.api.errors import ApiError, Conflict, Invalid, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.state import SyncerState
from skerry.kit.log import Logger
from skerry.logic.fleet.syncing.carrying import carried, digest
from skerry.logic.fleet.syncing.delivery import marked
from skerry.logic.fleet.syncing.downsync import Outcome
from skerry.logic.fleet.syncing.returning import status_patch
from skerry.runtime.client import WriteOptions

_OPTIONS = WriteOptions(field_manager=EDGE_FIELD_MANAGER)
_QUIET = frozenset(("HubAway", "NoSyncerConfig"))


class Returning:
    """Tells the mailbox how one object fares."""

    def __init__(self, state: SyncerState) -> None:
        self._s = state
        self._log = Logger("syncer-status")

    async def reconcile(self, ref: ObjectRef) -> None:
        """Write what the mailbox does not say yet about *ref*."""
        s = self._s
        obj = s.mailbox.get(ref)
        gvr = s.mailbox.followed(ref.group_resource)
        if obj is None or gvr is None or not s.config.scope.covers(ref):
            return
        try:
            await self._mark(gvr, ref, obj)
            await self._status(gvr, ref, obj)
        except (NotFound, Conflict, Invalid) as error:
            # It went or changed meanwhile, which an event tells; or the hub rejects the status.
            self._log.debug("status not returned", key=ref.text, error=error.message)
        except ApiError as error:
            self._log.warning("status not returned", key=ref.text, error=error.message)
            raise

    async def _mark(self, gvr: GroupVersionResource, ref: ObjectRef, obj: Object) -> None:
        outcome = self._s.outcomes.get(ref)
        if (
            outcome.state == "Gone"
            or outcome.reason in _QUIET
            or not self._current(ref, obj, outcome)
        ):
            return
        notes = marked(obj, outcome)
        if notes is None:
            return
        patch = {"metadata": {"uid": obj["metadata"]["uid"], "annotations": notes}}
        await self._s.hub.patch(gvr, ref.name, patch, ref.namespace, quiet=True, options=_OPTIONS)
        self._s.metrics.returned.labels("mark").inc()

    def _current(self, ref: ObjectRef, obj: Object, outcome: Outcome) -> bool:
        """Tell whether the outcome is about what the mailbox says now."""
        if outcome.state != "Applied":
            return True
        record = self._s.memory.placed(ref)
        if record is None:
            return False
        return record.desired.options.create_only or record.applied == digest(carried(obj))

    async def _status(self, gvr: GroupVersionResource, ref: ObjectRef, obj: Object) -> None:
        s = self._s
        record = s.memory.placed(ref)
        live = s.view.get(gvr, ref)
        if record is None or live is None or not record.is_of(live):
            return
        patch = status_patch(obj, live)
        if patch is None:
            return
        info = s.served_hub.find(gvr)
        parts = info is None or any(sub.name == "status" for sub in info.subresources)
        await s.hub.patch(
            gvr,
            ref.name,
            patch,
            ref.namespace,
            kind="json",
            subresource="status" if parts else "",
            quiet=True,
            options=_OPTIONS,
        )
        s.metrics.returned.labels("status").inc()
