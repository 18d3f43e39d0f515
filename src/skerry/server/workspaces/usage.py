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
from skerry.api.keys import type_prefix
from skerry.api.objects import Object
from skerry.kit.steps import give_way
from skerry.logic.machinery.workspaces.limits import (
    ANNOTATIONS,
    KIND_LIMITS,
    Limits,
    Usage,
    kind_refusal,
    parse_limit,
    refusal,
    tree_of,
    with_annotations,
)
from skerry.server.admission.operation import Operation
from skerry.server.change import Change
from skerry.server.security.authorization import is_administrator
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.state import CORE, TENANCY, HubState
from skerry.store.base import Compacted, Store

_CLUSTERS = (CORE, "logicalclusters")
_CLUSTERS_PREFIX = type_prefix(*_CLUSTERS)
_WORKSPACES = (TENANCY, "workspaces")
_EVENTS = frozenset((("", "events"), ("events.k8s.io", "events")))
# A page of ordinary objects is read and counted in a few milliseconds.
_PAGE = 500
_SEGMENTS = 6
_NOTHING = [0, 0]


class WorkspaceUsage:
    """Objects and bytes of every logical cluster, and of trees of them."""

    def __init__(self, store: Store, state: HubState) -> None:
        self._store = store
        self._state = state
        self._used: dict[str, list[int]] = {}
        self._kinds: dict[tuple[str, str, str], int] = {}
        # The tree each cluster is in; objects, bytes and clusters of each tree; and its top one.
        self._tree_of: dict[str, str] = {}
        self._trees: dict[str, list[int]] = {}
        self._tops: dict[str, str] = {}
        self.complete = False
        self._begin = asyncio.Event()

    def follow(self, dispatcher: Dispatcher) -> None:
        """Count every change from the dispatcher's position on."""
        self._dispatcher = dispatcher
        dispatcher.observe_all(self._observe, self._start_over)

    def of(self, cluster: str) -> Usage:
        """Return what *cluster* holds, as far as it is counted."""
        return Usage(*self._used.get(cluster, ()))

    def of_kind(self, cluster: str, kind: tuple[str, str]) -> int:
        """Return how many objects of one of ``KIND_LIMITS`` *cluster* holds."""
        return self._kinds.get((cluster, *kind), 0)

    def tree(self, cluster: str) -> tuple[str, str, Usage] | None:
        """Return the tree *cluster* is in, its top cluster and what it holds; None outside."""
        tree = self._tree_of.get(cluster)
        if tree is None:
            return None
        return tree, self._tops.get(tree, ""), Usage(*self._trees[tree])

    async def run(self) -> None:
        """Read what was there before, at the start and whenever changes were missed."""
        self._start_over()
        while True:
            await self._begin.wait()
            self._begin.clear()
            for table in (self._used, self._kinds, self._tree_of, self._trees, self._tops):
                table.clear()
            for cluster in self._state.clusters:
                self._place(cluster)
            try:
                await self._read(self._dispatcher.position)
            except Compacted:
                self._begin.set()  # reading took longer than history is kept
                continue
            self.complete = not self._begin.is_set()

    async def _read(self, revision: int) -> None:
        after = ""
        while not self._begin.is_set():
            page = await self._store.sizes("/", after=after, limit=_PAGE, revision=revision)
            for key, size in page.entries:
                self._add(key, 1, size)
            if not page.more:
                return
            after = page.entries[-1][0]
            await give_way()

    def _start_over(self) -> None:
        self.complete = False
        self._begin.set()

    def _observe(self, change: Change) -> None:
        event = change.event
        objects = (event.value is not None) - (event.previous is not None)
        self._add(event.key, objects, len(event.value or b"") - len(event.previous or b""))
        if objects and event.key.startswith(_CLUSTERS_PREFIX):
            self._place(event.key.split("/", 4)[3])

    def _place(self, cluster: str) -> None:
        """Note which tree a cluster is in, now that it is there, or that it is gone."""
        known = self._state.clusters.get(cluster)
        path = "" if known is None else known.path
        tree, before = tree_of(path), self._tree_of.pop(cluster, "")
        held = self._used.get(cluster, _NOTHING)
        if before:
            total = self._trees[before]
            for index, number in enumerate((*held, 1)):
                total[index] -= number
            if not total[2]:
                del self._trees[before]
                self._tops.pop(before, None)
        if tree:
            self._tree_of[cluster] = tree
            total = self._trees.setdefault(tree, [0, 0, 0])
            for index, number in enumerate((*held, 1)):
                total[index] += number
            if path == tree:
                self._tops[tree] = cluster

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
        tree = self._tree_of.get(parts[3])
        if tree is not None:
            self._trees[tree][0] += objects
            self._trees[tree][1] += size
        if objects:
            self._add_kind(parts[3], (parts[1], parts[2]), objects)

    def _add_kind(self, cluster: str, kind: tuple[str, str], objects: int) -> None:
        if kind in KIND_LIMITS:
            count = self._kinds.get((cluster, *kind), 0) + objects
            if count:
                self._kinds[(cluster, *kind)] = count
            else:
                self._kinds.pop((cluster, *kind), None)


class WorkspaceLimits:
    """Refuses what would make a full workspace or mailbox larger.

    Administrators of the hub, and so its controllers, are exempt: whoever must repair a full
    workspace can. Events expire and are not counted against creating.
    """

    def __init__(
        self,
        usage: WorkspaceUsage,
        mailboxes: Mailboxes,
        workspace: Limits,
        mailbox: Limits,
        tree: Limits,
    ) -> None:
        self._usage = usage
        self._mailboxes = mailboxes
        self._workspace = workspace
        self._mailbox = mailbox
        self._tree = tree

    async def admit(self, operation: Operation) -> None:
        user = operation.call.user
        if operation.verb == "DELETE" or is_administrator(user):
            return
        if operation.type == _CLUSTERS:
            _check_annotations(operation)
        cluster = operation.call.info.cluster
        usage = self._usage.of(cluster)
        creates = operation.verb == "CREATE" and operation.type not in _EVENTS
        why = refusal("workspace", self._limits(cluster), usage, creates=creates)
        if not why and creates and operation.type in KIND_LIMITS:
            why = kind_refusal(operation.type, self._usage.of_kind(cluster, operation.type))
        why = why or self._tree_refusal(operation, cluster, creates=creates)
        if why and self._usage.complete and _grows(operation):
            raise Forbidden.of(*operation.type, operation.obj["metadata"].get("name") or "", why)

    def _tree_refusal(self, operation: Operation, cluster: str, *, creates: bool) -> str:
        found = self._usage.tree(cluster)
        if found is None:
            return ""
        tree, top, usage = found
        known, limits = self._mailboxes.state.clusters.get(top), self._tree
        if known is not None and known.tree_limits is not None:
            limits = with_annotations(limits, *known.tree_limits)
        workspace = creates and operation.type == _WORKSPACES
        return refusal(tree, limits, usage, creates=creates, workspace=workspace)

    def _limits(self, cluster: str) -> Limits:
        default = self._workspace
        if self._mailboxes.mailbox(cluster) is not None:
            default = self._mailbox
        known = self._mailboxes.state.clusters.get(cluster)
        if known is None or not (known.max_objects or known.max_bytes):
            return default
        return with_annotations(default, known.max_objects, known.max_bytes)


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
