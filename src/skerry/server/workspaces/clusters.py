"""Logical clusters: who may change them, and how they become ready.

A LogicalCluster is the server's own. Users read it; whoever initializes workspaces takes their
initializer off its status, and with the last one gone the cluster and its Workspace are Ready,
all in the transaction of that patch.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError, Forbidden, Invalid
from skerry.api.keys import ObjectKey
from skerry.kit.clock import Clock, rfc3339
from skerry.logic.resource import Object
from skerry.logic.workspaces import births
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode, encode
from skerry.server.security.authorization import MASTERS
from skerry.server.workspaces.state import CORE, TENANCY
from skerry.store.base import Store, Write


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
            if operation.subresource == "status" and not masters:
                raise _refused(operation, "status is the server's to write")
            return
        if operation.type != (CORE, "logicalclusters"):
            return
        if operation.verb == "CREATE" and not masters:
            raise _refused(operation, "LogicalCluster cannot be created")
        if operation.verb == "DELETE":
            deletable = (operation.obj.get("spec") or {}).get("directlyDeletable")
            if not deletable and not masters:
                raise _refused(operation, "LogicalCluster cannot be deleted")
        elif operation.verb == "UPDATE" and operation.old is not None:
            await self._update(operation, operation.old, masters=masters)

    async def _update(self, operation: Operation, old: Object, *, masters: bool) -> None:
        obj = operation.obj
        if not masters and obj.get("spec") != old.get("spec"):
            raise _refused(operation, "spec is the server's to write")
        if operation.subresource == "status":
            await self._initialize(operation, old, masters=masters)

    async def _initialize(self, operation: Operation, old: Object, *, masters: bool) -> None:
        """Take initializers off; with the last one gone the cluster is ready."""
        obj = operation.obj
        before = _initializers(old)
        left = _initializers(obj)
        if not masters:
            self._check_removal(operation, before, left)
            # Of the status nothing else is the initializer's.
            obj["status"] = {**(old.get("status") or {}), "initializers": left}
        if left == before:
            return
        births.settle_initializers(obj, left, rfc3339(self._clock.now()))
        await self._tell_workspace(operation, left)

    def _check_removal(self, operation: Operation, before: list[str], left: list[str]) -> None:
        added = [name for name in left if name not in before]
        if added:
            error = FieldError.forbidden("status.initializers", "initializers cannot be added")
            raise Invalid.of(CORE, "LogicalCluster", "cluster", [error])
        # Through a view each may take off their own only; elsewhere nobody but masters gets here.
        if not operation.call.labels and left != before:
            raise _refused(operation, "status is the server's to write")

    async def _tell_workspace(self, operation: Operation, left: Sequence[str]) -> None:
        owner = (operation.obj.get("spec") or {}).get("owner")
        if not owner:
            return
        key = ObjectKey(TENANCY, self.workspaces, owner["cluster"], "", owner["name"])
        entry = await self._store.get(key.path())
        if entry is None:
            return
        workspace = decode(entry.value, entry.revision)
        if workspace["metadata"]["uid"] == owner["uid"]:
            births.settle_initializers(workspace, left, rfc3339(self._clock.now()))
            write = Write(entry.key, encode(workspace), expected=entry.revision)
            operation.writes.append(write)


def _initializers(obj: Object) -> list[str]:
    return list((obj.get("status") or {}).get("initializers") or [])


def _refused(operation: Operation, why: str) -> Forbidden:
    group, resource = operation.type
    return Forbidden.of(group, resource, operation.obj["metadata"].get("name", ""), why)
