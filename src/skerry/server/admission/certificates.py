"""Who asks for a certificate is written by the server; who may decide is asked of RBAC.

As in kube-apiserver: the requester's name, groups, UID and extra are set on create and kept by
every later write; approving needs the verb ``approve`` on the signer, signing the verb ``sign``;
and nobody becomes a member of ``system:masters`` by a request.
"""

from __future__ import annotations

from typing import Any, ClassVar

from skerry.api.errors import Forbidden, Invalid
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.server.access import Attributes, Authorizer
from skerry.server.admission.operation import Operation
from skerry.server.security.authorization import MASTERS
from skerry.server.security.certificate_requests import (
    RequestError,
    organizations_of,
    parse_request,
)
from skerry.server.user import User, user_info

GROUP = "certificates.k8s.io"
TYPE = (GROUP, "certificatesigningrequests")
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_VERBS = {"approval": "approve", "status": "sign"}
_REQUESTER = ("username", "uid", "groups", "extra")


class CertificateRequests:
    """Names the requester, dates the conditions, and guards approval and signing by signer."""

    TYPES: ClassVar = frozenset({TYPE})

    def __init__(self, authorizer: Authorizer, clock: Clock) -> None:
        self._authorizer = authorizer
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.type != TYPE or operation.verb == "DELETE":
            return
        if operation.old is None:
            name_requester(operation)
            _check_request(operation)
            return
        # What was asked for is never changed, by whichever way a write comes.
        operation.obj["spec"] = operation.old.get("spec") or {}
        verb = _VERBS.get(operation.subresource)
        if verb is not None and _decides(operation.obj, operation.old):
            self._guard(operation, verb)
            date_conditions(operation, rfc3339(self._clock.now()))

    def _guard(self, operation: Operation, verb: str) -> None:
        signer = signer_of(operation.obj)
        cluster, user = operation.call.info.cluster, operation.call.user
        if not may_decide(self._authorizer, user, cluster, verb, signer):
            raise refused(operation, verb, signer)


def name_requester(operation: Operation) -> None:
    """Write into a new request who makes it, whatever it says itself."""
    spec: dict[str, Any] = operation.obj.setdefault("spec", {})
    for name in _REQUESTER:
        spec.pop(name, None)
    call = operation.call
    spec.update(user_info(call.user.seen_from(call.info.cluster)))


def may_decide(authorizer: Authorizer, user: User, cluster: str, verb: str, signer: str) -> bool:
    """Tell whether *user* has *verb* on *signer* in *cluster*, by its name or its domain."""
    return any(
        authorizer.authorize(
            user,
            Attributes(cluster=cluster, verb=verb, group=GROUP, resource="signers", name=name),
        ).allowed
        for name in (signer, f"{signer.split('/', 1)[0]}/*")
    )


def refused(operation: Operation, verb: str, signer: str) -> Forbidden:
    """Return the refusal of a decision about a request."""
    why = f'user not permitted to {verb} requests with signerName "{signer}"'
    return Forbidden.of(*TYPE, operation.obj["metadata"]["name"], why)


def signer_of(request: Object) -> str:
    """Return the signer a request is for."""
    return str((request.get("spec") or {}).get("signerName") or "")


def conditions_of(request: Object) -> list[Object]:
    """Return what was decided about a request."""
    return (request.get("status") or {}).get("conditions") or []


def date_conditions(operation: Operation, now: str) -> None:
    """Give every condition its times, where it has none."""
    before = {c.get("type"): c for c in conditions_of(operation.old or {})}
    for condition in conditions_of(operation.obj):
        condition.setdefault("lastUpdateTime", now)
        known = before.get(condition.get("type"))
        if known is not None and known.get("status") == condition.get("status"):
            condition.setdefault("lastTransitionTime", known.get("lastTransitionTime") or now)
        condition.setdefault("lastTransitionTime", now)


def _decides(new: Object, old: Object) -> bool:
    """Tell whether a write changes what was decided, or the certificate."""
    return (new.get("status") or {}) != (old.get("status") or {})


def _check_request(operation: Operation) -> None:
    obj = operation.obj
    try:
        request = parse_request(obj["spec"])
    except RequestError as error:
        name = obj["metadata"].get("name") or ""
        raise Invalid.of(GROUP, "CertificateSigningRequest", name, error.errors) from error
    if signer_of(obj) == _CLIENT_SIGNER and MASTERS in organizations_of(request):
        why = f"use of {_CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
        raise Forbidden.of(*TYPE, obj["metadata"].get("name") or "", why)
