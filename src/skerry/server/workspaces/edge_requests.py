"""The signer ``edge.kcp.io/edge-client``: who may ask for an edge's certificate, and who approves.

Only requests in a mailbox, for the edge whose mailbox it is, are taken. They are approved at once
when a pre-approved bootstrap credential, the edge itself or the policy of the inventory workspace
says so; otherwise by a person with the verb ``approve`` on the signer in the inventory workspace,
where the SyncTarget is. The server signs in the write that approves.
"""

from __future__ import annotations

import base64
from datetime import datetime, timedelta

from skerry.api.edge import Mailbox
from skerry.api.edge_identity import (
    APPROVED,
    BOOTSTRAP_GROUPS,
    EDGE_GROUPS,
    EXCHANGED,
    KEY_DIGEST,
    MAILBOX_NAMESPACE,
    SIGNER,
    EdgeName,
    secret_value,
)
from skerry.api.errors import FieldError, Forbidden, Invalid, TooManyRequests
from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.machinery.workspaces.principals import ACCOUNT_PREFIX
from skerry.server.access import Authorizer
from skerry.server.admission.certificates import (
    GROUP,
    TYPE,
    conditions_of,
    date_conditions,
    may_decide,
    name_requester,
    refused,
    signer_of,
)
from skerry.server.admission.operation import Admission, Operation
from skerry.server.codec import decode, encode
from skerry.server.security.certificate_requests import RequestError, check_edge_request
from skerry.server.workspaces.bootstrap_credentials import secret_key_of
from skerry.server.workspaces.edge_certificates import EdgeIssuer
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.store.base import Store, Write

_KIND = "CertificateSigningRequest"
# Kubernetes' figures: how long requests are kept that were decided, and that were not.
_DECIDED_LIFETIME = timedelta(hours=1)
_PENDING_LIFETIME = timedelta(hours=24)
# An edge has one key in use and perhaps one to come; more are a mistake or an attack.
_MAX_REQUESTS = 20


class EdgeRequests:
    """Takes, approves and signs requests for certificates of edges."""

    def __init__(
        self,
        mailboxes: Mailboxes,
        issuer: EdgeIssuer,
        authorizer: Authorizer,
        store: Store,
        clock: Clock,
    ) -> None:
        self._mailboxes = mailboxes
        self._issuer = issuer
        self._authorizer = authorizer
        self._store = store
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE":
            return
        mailbox = self._mailbox(operation)
        if operation.old is None:
            await self._create(operation, mailbox)
            return
        operation.obj["spec"] = operation.old.get("spec") or {}
        if operation.subresource == "status":
            raise Forbidden.of(*TYPE, operation.obj["metadata"]["name"], "the server signs it")
        if operation.subresource == "approval":
            self._decide(operation, mailbox)

    def _mailbox(self, operation: Operation) -> Mailbox:
        cluster = operation.call.info.cluster
        mailbox = self._mailboxes.mailbox(cluster)
        if mailbox is None or not self._mailboxes.sync_target(mailbox):
            detail = "this signer issues in mailboxes of SyncTargets only"
            error = FieldError.invalid("spec.signerName", SIGNER, detail)
            raise Invalid.of(GROUP, _KIND, operation.obj["metadata"].get("name") or "", [error])
        return mailbox

    # -- asking --------------------------------------------------------------------------------

    async def _create(self, operation: Operation, mailbox: Mailbox) -> None:
        name_requester(operation)
        self._check(operation, mailbox)
        why = await self._approval(operation, mailbox)
        await self._make_room(operation)
        if why:
            operation.obj["status"] = {"conditions": [_approved(why)]}
            date_conditions(operation, rfc3339(self._clock.now()))
            self._sign(operation, mailbox)

    def _check(self, operation: Operation, mailbox: Mailbox) -> None:
        edge = EdgeName(operation.call.info.cluster, mailbox.uid)
        try:
            check_edge_request(operation.obj, edge)
        except RequestError as error:
            name = operation.obj["metadata"].get("name") or ""
            raise Invalid.of(GROUP, _KIND, name, error.errors) from error

    async def _approval(self, operation: Operation, mailbox: Mailbox) -> str:
        """Return why a request is approved at once; empty when a person must."""
        user = operation.call.user
        if user.groups == EDGE_GROUPS and user.name.startswith(ACCOUNT_PREFIX):
            await self._exchange(operation)
            return "the edge exchanges its token for a certificate"
        if user.groups == EDGE_GROUPS:
            return "the edge requests the successor of its certificate"
        if user.groups == BOOTSTRAP_GROUPS and await self._redeemed(operation):
            return "the bootstrap credential was approved when it was made"
        if self._mailboxes.approves_by_itself(mailbox):
            return "the inventory workspace approves its edges"
        return ""

    async def _redeemed(self, operation: Operation) -> bool:
        """Bind a bootstrap credential to the key of this request; tell whether it is approved."""
        key = secret_key_of(operation.call.user)
        entry = await self._store.get(key)
        name = str(operation.obj["metadata"]["name"])
        if entry is None:
            raise Forbidden.of(*TYPE, name, "the bootstrap credential was withdrawn")
        secret = decode(entry.value, entry.revision)
        digest = secret_value(secret, KEY_DIGEST)
        if digest and digest != name:
            raise Forbidden.of(*TYPE, name, "another key has redeemed the bootstrap credential")
        if not digest:
            secret["data"][KEY_DIGEST] = base64.b64encode(name.encode()).decode()
            operation.writes.append(Write(key, encode(secret), expected=entry.revision))
        return secret_value(secret, APPROVED) == "true"

    async def _exchange(self, operation: Operation) -> None:
        """Let the account of an edge of the previous version have a certificate for one key."""
        user, name = operation.call.user, str(operation.obj["metadata"]["name"])
        account = user.name.rpartition(":")[2]
        key = ObjectKey("", "serviceaccounts", user.home, MAILBOX_NAMESPACE, account).path()
        entry = await self._store.get(key)
        if entry is None:
            raise Forbidden.of(*TYPE, name, "the account is gone")
        obj = decode(entry.value, entry.revision)
        notes = obj["metadata"].setdefault("annotations", {})
        if notes.get(EXCHANGED, name) != name:
            raise Forbidden.of(*TYPE, name, "another key has been exchanged for the token")
        if EXCHANGED not in notes:
            notes[EXCHANGED] = name
            operation.writes.append(Write(key, encode(obj), expected=entry.revision))

    async def _make_room(self, operation: Operation) -> None:
        """Remove requests that nobody needs any more; refuse where too many are left."""
        now, left = self._clock.now(), 0
        prefix = type_prefix(*TYPE, operation.call.info.cluster)
        for entry in (await self._store.range(prefix)).entries:
            request = decode(entry.value, entry.revision)
            if signer_of(request) != SIGNER:
                continue
            if _is_over(request, now):
                operation.writes.append(Write(entry.key, None, expected=entry.revision))
            else:
                left += 1
        if left >= _MAX_REQUESTS:
            raise TooManyRequests(
                f"the mailbox has {left} certificate signing requests of the last hour: want at "
                f"most {_MAX_REQUESTS}"
            )

    # -- deciding ------------------------------------------------------------------------------

    def _decide(self, operation: Operation, mailbox: Mailbox) -> None:
        user = operation.call.user
        if conditions_of(operation.obj) == conditions_of(operation.old or {}):
            return
        if not may_decide(self._authorizer, user, mailbox.cluster, "approve", SIGNER):
            raise refused(operation, "approve", SIGNER)
        date_conditions(operation, rfc3339(self._clock.now()))
        if _is(operation.obj, "Approved") and not _is(operation.obj, "Denied"):
            self._sign(operation, mailbox)

    def _sign(self, operation: Operation, mailbox: Mailbox) -> None:
        status = operation.obj.setdefault("status", {})
        if operation.dry_run or status.get("certificate"):
            return
        edge = EdgeName(operation.call.info.cluster, mailbox.uid)
        request = check_edge_request(operation.obj, edge)
        seconds = operation.obj["spec"].get("expirationSeconds")
        status["certificate"] = base64.b64encode(self._issuer.issue(request, seconds)).decode()


class SignedRequests:
    """Leaves requests of the edge signer to its own rule, and all others to *others*."""

    def __init__(self, edges: EdgeRequests, others: Admission) -> None:
        self._edges = edges
        self._others = others

    async def admit(self, operation: Operation) -> None:
        if operation.type != TYPE:
            return
        ours = signer_of(operation.old or operation.obj) == SIGNER
        await (self._edges if ours else self._others).admit(operation)


def _approved(message: str) -> Object:
    return {
        "type": "Approved",
        "status": "True",
        "reason": "AutoApproved",
        "message": message,
    }


def _is(request: Object, kind: str) -> bool:
    return any(condition.get("type") == kind for condition in conditions_of(request))


def _is_over(request: Object, now: datetime) -> bool:
    decided = bool(conditions_of(request))
    age = now - parse_rfc3339(request["metadata"]["creationTimestamp"])
    return age > (_DECIDED_LIFETIME if decided else _PENDING_LIFETIME)
