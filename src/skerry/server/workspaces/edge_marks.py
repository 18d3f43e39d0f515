"""The marks on LogicalClusters that say which edges get in.

``edge.kcp.io/edge-revoked`` on a mailbox closes it, in the write that sets it: credentials and
requests of before are deleted with it, so whatever is there later was made later.
``edge.kcp.io/edge-approval`` on an inventory workspace says whether requests of its edges need a
person. Nothing inside a mailbox decides about either.
"""

from __future__ import annotations

from skerry.api.edge import Mailbox
from skerry.api.edge_identity import (
    APPROVAL_POLICY,
    AUTO_APPROVAL,
    MANUAL_APPROVAL,
    REVOKED,
    SIGNER,
)
from skerry.api.errors import FieldError, Forbidden, Invalid
from skerry.api.keys import type_prefix
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339_micro
from skerry.server.access import Authorizer
from skerry.server.admission.certificates import TYPE as REQUESTS
from skerry.server.admission.certificates import may_decide, signer_of
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.security.authorization import is_administrator
from skerry.server.user import User
from skerry.server.workspaces.bootstrap_credentials import credentials_in
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.state import CORE
from skerry.store.base import Store, Write

_TYPE = (CORE, "logicalclusters")
_POLICIES = (AUTO_APPROVAL, MANUAL_APPROVAL)


class EdgeMarks:
    """Guards both annotations, and closes a mailbox when its edge is revoked."""

    def __init__(
        self, mailboxes: Mailboxes, authorizer: Authorizer, store: Store, clock: Clock
    ) -> None:
        self._mailboxes = mailboxes
        self._authorizer = authorizer
        self._store = store
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        old = operation.old
        if operation.type != _TYPE or operation.verb != "UPDATE" or old is None:
            return
        if _mark(operation.obj, APPROVAL_POLICY) != _mark(old, APPROVAL_POLICY):
            self._check_policy(operation)
        if _mark(operation.obj, REVOKED) != _mark(old, REVOKED):
            await self._revocation(operation, old)
        if not operation.subresource and not is_administrator(operation.call.user):
            self._check_others(operation, old)

    def _check_others(self, operation: Operation, old: Object) -> None:
        """Whoever revokes an edge without being an administrator writes nothing else."""
        if self._mailboxes.mailbox(operation.call.info.cluster) is None:
            return
        if _without_mark(operation.obj, REVOKED) != _without_mark(old, REVOKED):
            raise _refused(operation, f"of a mailbox's, only {REVOKED} may be written")

    # -- whether edges need a person -----------------------------------------------------------

    def _check_policy(self, operation: Operation) -> None:
        policy = _mark(operation.obj, APPROVAL_POLICY)
        if policy and policy not in _POLICIES:
            error = FieldError.not_supported(_field(APPROVAL_POLICY), policy, _POLICIES)
            raise Invalid.of(CORE, "LogicalCluster", "cluster", [error])
        cluster, user = operation.call.info.cluster, operation.call.user
        if not may_decide(self._authorizer, user, cluster, "approve", SIGNER):
            why = f'the annotation {APPROVAL_POLICY} needs the verb "approve" on signer {SIGNER}'
            raise _refused(operation, why)

    # -- closing -------------------------------------------------------------------------------

    async def _revocation(self, operation: Operation, old: Object) -> None:
        cluster, user = operation.call.info.cluster, operation.call.user
        mailbox = self._mailboxes.mailbox(cluster)
        if mailbox is None:
            error = FieldError.forbidden(_field(REVOKED), "this workspace is no mailbox")
            raise Invalid.of(CORE, "LogicalCluster", "cluster", [error])
        revokes = bool(_mark(operation.obj, REVOKED))
        if not is_administrator(user) and not (revokes and self._may_approve(user, mailbox)):
            raise _refused(operation, f"the annotation {REVOKED} is the hub's administrators'")
        if revokes:
            # The hub's own time: certificates issued by its clock are held against it.
            now = rfc3339_micro(self._clock.now())
            operation.obj["metadata"]["annotations"][REVOKED] = now
            await self._delete_credentials(operation, cluster)

    def _may_approve(self, user: User, mailbox: Mailbox) -> bool:
        return may_decide(self._authorizer, user, mailbox.cluster, "approve", SIGNER)

    async def _delete_credentials(self, operation: Operation, cluster: str) -> None:
        """Delete what would let an edge in: credentials that were minted, requests that wait."""
        async for entry, _ in credentials_in(self._store, cluster):
            operation.writes.append(Write(entry.key, None, expected=entry.revision))
        for entry in (await self._store.range(type_prefix(*REQUESTS, cluster))).entries:
            if signer_of(decode(entry.value, entry.revision)) == SIGNER:
                operation.writes.append(Write(entry.key, None, expected=entry.revision))


def _mark(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name) or "")


def _without_mark(obj: Object, name: str) -> Object:
    """Return labels, annotations, finalizers and spec of *obj*, less one annotation."""
    metadata = obj["metadata"]
    notes = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != name}
    return {
        "annotations": notes,
        "labels": metadata.get("labels") or {},
        "finalizers": metadata.get("finalizers") or [],
        "ownerReferences": metadata.get("ownerReferences") or [],
        "spec": obj.get("spec"),
    }


def _field(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"


def _refused(operation: Operation, why: str) -> Forbidden:
    return Forbidden.of(*_TYPE, operation.obj["metadata"].get("name") or "", why)
