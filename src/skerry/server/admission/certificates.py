"""Who asks for a certificate is written by the server; who may decide is asked of RBAC."""

from __future__ import annotations

from typing import Any

from skerry.api.errors import Forbidden
from skerry.kit.clock import Clock, rfc3339
from skerry.server.access import Attributes, Authorizer
from skerry.server.admission.operation import Operation
from skerry.server.subresources.reviews import user_info

_GROUP = "certificates.k8s.io"
_TYPE = (_GROUP, "certificatesigningrequests")
_VERBS = {"approval": "approve", "status": "sign"}


class CertificateRequests:
    """Names the requester, dates the conditions, and guards approval and signing by signer."""

    def __init__(self, authorizer: Authorizer, clock: Clock) -> None:
        self._authorizer = authorizer
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.type != _TYPE or operation.verb == "DELETE":
            return
        if operation.verb == "CREATE":
            self._name_requester(operation)
        elif operation.subresource in _VERBS:
            self._guard(operation, _VERBS[operation.subresource])
            self._date_conditions(operation)

    def _name_requester(self, operation: Operation) -> None:
        spec: dict[str, Any] = operation.obj.setdefault("spec", {})
        for name in ("username", "uid", "groups", "extra"):
            spec.pop(name, None)
        spec.update(user_info(operation.call.user))

    def _guard(self, operation: Operation, verb: str) -> None:
        signer = str((operation.obj.get("spec") or {}).get("signerName", ""))
        cluster, user = operation.call.info.cluster, operation.call.user
        for name in (signer, f"{signer.split('/', 1)[0]}/*"):
            attributes = Attributes(
                cluster=cluster, verb=verb, group=_GROUP, resource="signers", name=name
            )
            if self._authorizer.authorize(user, attributes).allowed:
                return
        why = f'user not permitted to {verb} requests with signerName "{signer}"'
        raise Forbidden.of(*_TYPE, operation.obj["metadata"]["name"], why)

    def _date_conditions(self, operation: Operation) -> None:
        now = rfc3339(self._clock.now())
        before = {c.get("type"): c for c in _conditions(operation.old or {})}
        for condition in _conditions(operation.obj):
            condition.setdefault("lastUpdateTime", now)
            known = before.get(condition.get("type"))
            if known is not None and known.get("status") == condition.get("status"):
                condition.setdefault("lastTransitionTime", known.get("lastTransitionTime") or now)
            condition.setdefault("lastTransitionTime", now)


def _conditions(request: dict[str, Any]) -> list[dict[str, Any]]:
    return (request.get("status") or {}).get("conditions") or []
