"""What an edge may write, judged by the objects themselves, in the manner of NodeRestriction.

Authorization knows names only. Here an edge's writes are held against its SyncerConfig and against
the object: a copy gets a status and marks, a report stays a report, and the heartbeat Lease says
when the hub heard of the edge, not when the edge says so.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from skerry.api.edge import MAX_LEASE_SECONDS
from skerry.api.edge_identity import EDGE_GROUPS, NARROW_GROUPS, SIGNER
from skerry.api.errors import FieldError, Invalid
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.kit.clock import Clock
from skerry.kit.timestamps import parse_rfc3339, rfc3339, rfc3339_micro
from skerry.logic.machinery.edges.rights import (
    LEASES,
    REQUESTS,
    SYNCER_CONFIGS,
    Write,
    is_heartbeat,
    refusal,
)
from skerry.logic.machinery.edges.scope import Scope
from skerry.logic.machinery.workspaces.principals import ACCOUNT_PREFIX
from skerry.server.admission.operation import Operation


class Scopes(Protocol):
    """What the SyncerConfigs of a mailbox cover."""

    def scope(self, cluster: str) -> Scope:
        """Return it for the mailbox *cluster*."""


class EdgeRestriction:
    """Refuses every write of an edge that is none of a syncer's."""

    def __init__(self, mailboxes: Scopes, clock: Clock) -> None:
        self._mailboxes = mailboxes
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        groups = operation.call.user.groups
        if len(groups) != 1 or groups not in NARROW_GROUPS:
            return
        if operation.type == REQUESTS:
            _check_request(operation)
        elif groups == EDGE_GROUPS:
            self._restrict(operation)
        else:
            raise operation.forbidden("a bootstrap credential requests one certificate")

    def _restrict(self, operation: Operation) -> None:
        kind = GroupResource(*operation.type)
        if kind == SYNCER_CONFIGS:
            if operation.subresource != "status":
                raise operation.forbidden("an edge writes the status of a SyncerConfig only")
            return
        metadata = operation.obj["metadata"]
        ref = ObjectRef("", *kind, operation.call.namespace, metadata.get("name") or "")
        if is_heartbeat(kind, ref.namespace, ref.name):
            self._heartbeat(operation)
            return
        if operation.verb == "CONNECT":
            raise operation.forbidden("an edge connects to nothing in its mailbox")
        new = None if operation.verb == "DELETE" else operation.obj
        old = operation.obj if operation.verb == "DELETE" else operation.old
        why = refusal(
            self._mailboxes.scope(operation.call.info.cluster),
            Write(operation.verb, ref, operation.subresource, old, new),
        )
        if why:
            raise operation.forbidden(why)

    def _heartbeat(self, operation: Operation) -> None:
        if operation.verb == "DELETE":
            raise operation.forbidden("an edge renews its Lease and does not delete it")
        metadata = operation.obj["metadata"]
        if metadata.get("finalizers") or metadata.get("ownerReferences"):
            raise operation.forbidden("the Lease has no finalizers and no ownerReferences")
        spec: dict[str, Any] = operation.obj.setdefault("spec", {})
        before = ((operation.old or {}).get("spec") or {}).get("leaseDurationSeconds")
        seconds = spec.get("leaseDurationSeconds")
        if isinstance(seconds, int) and seconds > MAX_LEASE_SECONDS:
            # A syncer of an earlier version says what it always said, and must not fall silent.
            earlier = operation.call.user.name.startswith(ACCOUNT_PREFIX)
            if seconds != before and not earlier:
                raise _too_long(operation, seconds)
            spec["leaseDurationSeconds"] = MAX_LEASE_SECONDS
        now = self._clock.now()
        spec["renewTime"] = rfc3339_micro(now)
        acquired = ((operation.old or {}).get("spec") or {}).get("acquireTime")
        holder = ((operation.old or {}).get("spec") or {}).get("holderIdentity")
        same = acquired and holder == spec.get("holderIdentity")
        spec["acquireTime"] = acquired if same else rfc3339_micro(now)
        for entry in metadata.get("managedFields") or ():
            if not _is_past(entry.get("time"), now):
                entry["time"] = rfc3339(now)  # a client may send entries of its own


def _is_past(text: Any, now: datetime) -> bool:
    try:
        return parse_rfc3339(str(text)) <= now
    except ValueError:
        return False


def _check_request(operation: Operation) -> None:
    """Let requests of the edge signer pass, whose own rules say for which certificate."""
    signer = (operation.obj.get("spec") or {}).get("signerName")
    if operation.verb != "CREATE" or signer != SIGNER:
        raise operation.forbidden(f"an edge requests certificates of the signer {SIGNER} only")


def _too_long(operation: Operation, seconds: int) -> Invalid:
    detail = f"an edge's Lease lasts at most {MAX_LEASE_SECONDS} seconds"
    error = FieldError.invalid("spec.leaseDurationSeconds", seconds, detail)
    return Invalid.of(LEASES.group, "Lease", operation.obj["metadata"]["name"], [error])
