"""Logical clusters: who may change them, and how they become ready.

A LogicalCluster is the server's own. Users read it; whoever initializes workspaces takes their
initializer off its status through their view, the hub's administrators take off any of them, and
with the last one gone the cluster and its Workspace are Ready, all in the transaction of that
patch. An administrator of the workspace itself does not: what an initializer sets up is often meant
for them. Shards, where logical clusters are kept, are completed as they are written.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError, Invalid
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.workspaces import workspace_content
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP, initializer_label
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode, encode
from skerry.server.security.authorization import MASTERS
from skerry.server.workspaces.state import CORE, TENANCY
from skerry.store.base import Store, Write

# The only way phases go.
_PHASES = ("", "Scheduling", "Initializing", "Ready")


class ClusterRules:
    """Keeps logical clusters and the status of workspaces the server's."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # Where workspaces are kept; known once root exists.
        self.workspaces = "workspaces"

    async def admit(self, operation: Operation) -> None:
        masters = MASTERS in operation.call.user.groups
        if operation.type == (TENANCY, "workspaces"):
            if operation.subresource == "status" and not _administers(operation):
                raise operation.forbidden("status is the server's to write")
            return
        if operation.type == (CORE, "shards") and operation.verb != "DELETE":
            _complete_shard(operation.obj)
        if operation.type != (CORE, "logicalclusters"):
            return
        name = operation.obj["metadata"].get("name", "")
        if operation.verb == "CREATE" and name != "cluster":
            error = FieldError.not_supported("metadata.name", name, ["cluster"])
            raise Invalid.of(CORE, "LogicalCluster", name, [error])
        if operation.verb == "CREATE" and not masters:
            raise operation.forbidden("LogicalCluster cannot be created")
        if operation.verb == "DELETE":
            deletable = (operation.obj.get("spec") or {}).get("directlyDeletable")
            if not deletable and not masters:
                raise operation.forbidden("LogicalCluster cannot be deleted")
        elif operation.verb == "UPDATE" and operation.old is not None:
            await self._update(operation, operation.old, masters=masters)

    async def _update(self, operation: Operation, old: Object, *, masters: bool) -> None:
        obj = operation.obj
        if not masters and obj.get("spec") != old.get("spec"):
            if _wanted(obj) != _wanted(old):
                raise operation.forbidden("spec.initializers is immutable")
            raise operation.forbidden("spec is the server's to write")
        if operation.subresource == "status":
            await self._initialize(operation, old, masters=masters)

    async def _initialize(self, operation: Operation, old: Object, *, masters: bool) -> None:
        """Take initializers off; with the last one gone the cluster is ready."""
        obj = operation.obj
        before = _initializers(old)
        left = _initializers(obj)
        if operation.call.labels:
            _check_own(operation, before, left)
        elif not masters:
            _check_removal(operation, old, before, left)
        if not masters:
            # Of the status nothing else is anybody's.
            obj["status"] = {**(old.get("status") or {}), "initializers": left}
        if left == before:
            return
        workspace_content.settle_initializers(obj, left, rfc3339(self._clock.now()))
        await self._update_workspace(operation, left)

    async def _update_workspace(self, operation: Operation, left: Sequence[str]) -> None:
        owner = (operation.obj.get("spec") or {}).get("owner")
        if not owner:
            return
        key = ObjectKey(TENANCY, self.workspaces, owner["cluster"], "", owner["name"])
        entry = await self._store.get(key.path())
        if entry is None:
            return
        workspace = decode(entry.value, entry.revision)
        if workspace["metadata"]["uid"] == owner["uid"]:
            workspace_content.settle_initializers(workspace, left, rfc3339(self._clock.now()))
            write = Write(entry.key, encode(workspace), expected=entry.revision)
            operation.writes.append(write)


def _complete_shard(shard: Object) -> None:
    """Say where a Shard is for those outside, and its views: where it is, unless it says else."""
    spec = shard.get("spec") or {}
    for name in ("externalURL", "virtualWorkspaceURL"):
        if spec.get("baseURL") and not spec.get(name):
            spec[name] = spec["baseURL"]


def _administers(operation: Operation) -> bool:
    """Tell whether an administrator of the hub is asking."""
    groups = operation.call.user.groups
    return MASTERS in groups or ADMIN_GROUP in groups


def _check_own(operation: Operation, before: list[str], left: list[str]) -> None:
    """Refuse what, through the view of an initializer, is not taking off that one."""
    marked = (name for name in before if "=".join(initializer_label(name)) == operation.call.labels)
    own = next(marked, "")
    if not own or sorted(left) != sorted(name for name in before if name != own):
        detail = f'only removing the "{own}" initializer is supported'
        error = FieldError.invalid("status.initializers", left, detail)
        raise Invalid.of(TENANCY, "Workspace", "cluster", [error])


def _check_removal(operation: Operation, old: Object, before: list[str], left: list[str]) -> None:
    """Refuse to put initializers on a cluster, or to go back to an earlier phase."""
    was, phase = _phase(old), _phase(operation.obj)
    if set(left) != set(before):
        if not _administers(operation):
            raise operation.forbidden("status is the server's to write")
        if phase != "Initializing":
            # In kcp's words, as everything here.
            raise operation.forbidden("status.initializers is immutable after initilization")
        if not set(left) <= set(before):
            raise operation.forbidden("status.initializers must not grow")
    if was == "Initializing" and phase != was and left:
        raise operation.forbidden("status.initializers is not empty")
    if _PHASES.index(was) > _PHASES.index(phase):
        raise operation.forbidden(f'cannot transition from "{was}" to "{phase}"')


def _phase(obj: Object) -> str:
    found = (obj.get("status") or {}).get("phase", "")
    return found if found in _PHASES else ""


def _wanted(obj: Object) -> list[str]:
    return list((obj.get("spec") or {}).get("initializers") or [])


def _initializers(obj: Object) -> list[str]:
    return list((obj.get("status") or {}).get("initializers") or [])
