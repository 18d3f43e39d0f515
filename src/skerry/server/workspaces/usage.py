"""What each logical cluster holds, counted, and the rule that no tenant fills the store.

Every change passes the dispatcher with the value before and after it, so the count costs one
addition a write. What was there when the server started is read page by page beside its work;
until that is done nobody is refused. The count follows what is committed: requests in flight may
exceed a limit by as many as are admitted at once, and hubs that share a store each count for
themselves what the store tells all of them.
"""

from __future__ import annotations

import asyncio

import orjson

from skerry.api.errors import FieldError, Forbidden, Invalid
from skerry.logic.resource import Object
from skerry.logic.workspaces.limits import (
    ANNOTATIONS,
    Limits,
    Usage,
    parse_limit,
    refusal,
    with_annotations,
)
from skerry.logic.workspaces.names import ADMIN_GROUP
from skerry.server.admission.operation import Operation
from skerry.server.http.message import User
from skerry.server.security.authorization import MASTERS
from skerry.server.watch.change import Change
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.state import CORE
from skerry.store.base import Compacted, Store

_ADMINISTRATORS = frozenset((MASTERS, ADMIN_GROUP))
_CLUSTERS = (CORE, "logicalclusters")
_EVENTS = frozenset((("", "events"), ("events.k8s.io", "events")))
# A page of ordinary objects is read and counted in a few milliseconds.
_PAGE = 500
_SEGMENTS = 6
_NOTHING = [0, 0]


class WorkspaceUsage:
    """Objects and bytes of every logical cluster."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._used: dict[str, list[int]] = {}
        self.complete = False
        self._begin = asyncio.Event()

    def follow(self, dispatcher: Dispatcher) -> None:
        """Count every change from the dispatcher's position on."""
        self._dispatcher = dispatcher
        dispatcher.observe_all(self._observe, self._start_over)

    def of(self, cluster: str) -> Usage:
        """Return what *cluster* holds, as far as it is counted."""
        return Usage(*self._used.get(cluster, ()))

    async def run(self) -> None:
        """Read what was there before, at the start and whenever changes were missed."""
        self._start_over()
        while True:
            await self._begin.wait()
            self._begin.clear()
            self._used.clear()
            try:
                await self._read(self._dispatcher.position)
            except Compacted:
                self._begin.set()  # reading took longer than history is kept
                continue
            self.complete = not self._begin.is_set()

    async def _read(self, revision: int) -> None:
        after = ""
        while not self._begin.is_set():
            page = await self._store.range("/", after=after, limit=_PAGE, revision=revision)
            for entry in page.entries:
                self._add(entry.key, 1, len(entry.value))
            if not page.more:
                return
            after = page.entries[-1].key
            await asyncio.sleep(0)

    def _start_over(self) -> None:
        self.complete = False
        self._begin.set()

    def _observe(self, change: Change) -> None:
        event = change.event
        objects = (event.value is not None) - (event.previous is not None)
        self._add(event.key, objects, len(event.value or b"") - len(event.previous or b""))

    def _add(self, key: str, objects: int, size: int) -> None:
        parts = key.split("/", _SEGMENTS - 1)
        if len(parts) < _SEGMENTS:
            return  # a record of the server itself
        used = self._used.get(parts[3])
        if used is None:
            used = self._used[parts[3]] = [0, 0]
        used[0] += objects
        used[1] += size
        if used == _NOTHING:
            del self._used[parts[3]]


class WorkspaceLimits:
    """Refuses what would make a full workspace or mailbox larger.

    Administrators of the hub, and so its controllers, are exempt: whoever must repair a full
    workspace can. Events expire and are not counted against creating.
    """

    def __init__(
        self, usage: WorkspaceUsage, mailboxes: Mailboxes, workspace: Limits, mailbox: Limits
    ) -> None:
        self._usage = usage
        self._mailboxes = mailboxes
        self._workspace = workspace
        self._mailbox = mailbox

    async def admit(self, operation: Operation) -> None:
        user = operation.call.user
        if operation.verb == "DELETE" or _is_administrator(user):
            return
        if operation.type == _CLUSTERS:
            _check_annotations(operation)
        cluster = operation.call.info.cluster
        usage = self._usage.of(cluster)
        creates = operation.verb == "CREATE" and operation.type not in _EVENTS
        why = refusal(self._limits(cluster), usage, creates=creates)
        if why and self._usage.complete and _grows(operation):
            raise Forbidden.of(*operation.type, operation.obj["metadata"].get("name") or "", why)

    def _limits(self, cluster: str) -> Limits:
        default = self._workspace
        if self._mailboxes.mailbox(cluster) is not None:
            default = self._mailbox
        known = self._mailboxes.state.clusters.get(cluster)
        if known is None or not (known.max_objects or known.max_bytes):
            return default
        return with_annotations(default, known.max_objects, known.max_bytes)


def _is_administrator(user: User) -> bool:
    return not _ADMINISTRATORS.isdisjoint(user.groups)


def _grows(operation: Operation) -> bool:
    """Tell whether a write makes an object, or makes it larger."""
    if operation.old is None:
        return True
    return len(orjson.dumps(operation.obj)) > len(orjson.dumps(operation.old))


def _check_annotations(operation: Operation) -> None:
    """Only administrators of the hub change what a workspace may hold."""
    for name in ANNOTATIONS:
        if _annotation(operation.obj, name) != _annotation(operation.old or {}, name):
            why = f"the annotation {name} is the hub's administrators'"
            raise Forbidden.of(*_CLUSTERS, "cluster", why)


class LimitAnnotations:
    """Refuses limits that are no whole numbers, whoever writes them."""

    async def admit(self, operation: Operation) -> None:
        if operation.type != _CLUSTERS or operation.verb == "DELETE":
            return
        for name in ANNOTATIONS:
            text = _annotation(operation.obj, name)
            if text and parse_limit(text) is None:
                detail = "want a whole number, 0 for no limit"
                error = FieldError.invalid(f"metadata.annotations[{name}]", text[:64], detail)
                raise Invalid.of(CORE, "LogicalCluster", "cluster", [error])


def _annotation(obj: Object, name: str) -> str:
    return str(((obj.get("metadata") or {}).get("annotations") or {}).get(name) or "")
