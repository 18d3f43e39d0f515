"""Tokens for ServiceAccounts, and whose token this is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from skerry.api.errors import BadRequest, Conflict, FieldError, Invalid, NotFound
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339
from skerry.server.admission.nodes import refuse_token
from skerry.server.codec import decode, dump
from skerry.server.http.message import Answer, Response
from skerry.server.preparation import prepare
from skerry.server.request.call import Call, member
from skerry.server.security.authentication import Authentication
from skerry.server.security.tokens import BoundObject, ServiceAccountTokens, TokenRequest
from skerry.server.subresources.reviews import answered, received
from skerry.server.user import user_info
from skerry.store.base import Store

_GROUP = "authentication.k8s.io"
_USUAL_SECONDS = 3600
_SHORTEST_SECONDS = 600
_MAX_SECONDS = 1 << 32
_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class TokenHandler:
    """Issues tokens through serviceaccounts/NAME/token."""

    def __init__(self, store: Store, tokens: ServiceAccountTokens, max_lifetime: timedelta) -> None:
        """Tokens live as long as they are asked to, but no longer than *max_lifetime*."""
        self._store = store
        self._tokens = tokens
        self._max_seconds = int(max_lifetime.total_seconds())

    async def handle(self, call: Call) -> Answer:
        """Answer a TokenRequest."""
        request = call.request
        obj = prepare.sent_as(request, prepare.TOKEN_REQUEST)
        spec: dict[str, Any] = obj.get("spec") or {}
        self._refuse(call, spec)
        account = await self._find(call, "", "serviceaccounts", call.namespace, call.info.name)
        bound, node, pod = await self._bound(call, spec.get("boundObjectRef"))
        refuse_token(call, spec, pod)
        wanted = spec.get("expirationSeconds") or _USUAL_SECONDS
        seconds = min(wanted, self._max_seconds)
        if seconds < wanted:
            call.warnings.append(
                f"requested expiration of {wanted} seconds shortened to {seconds} seconds"
            )
        token, expires = self._tokens.issue(
            TokenRequest(
                namespace=call.namespace,
                name=call.info.name,
                uid=account["metadata"]["uid"],
                audiences=tuple(spec.get("audiences") or ()),
                lifetime_seconds=seconds,
                bound=bound,
                node=node,
                cluster=call.info.cluster,
            )
        )
        shown = {
            "audiences": list(spec.get("audiences") or self._tokens.api_audiences),
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        }
        answer = {
            "kind": "TokenRequest",
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {
                "name": call.info.name,
                "namespace": call.namespace,
                "creationTimestamp": None,
            },
            "spec": shown,
            "status": {"token": token, "expirationTimestamp": rfc3339(expires)},
        }
        return Response(status=201, body=dump(answer))

    def _refuse(self, call: Call, spec: dict[str, Any]) -> None:
        seconds = spec.get("expirationSeconds")
        errors: list[FieldError] = []
        if seconds is not None and not isinstance(seconds, int):
            raise BadRequest("spec.expirationSeconds: want a whole number")
        if seconds is not None and seconds < _SHORTEST_SECONDS:
            detail = "may not specify a duration less than 10 minutes"
            errors.append(FieldError.invalid("spec.expirationSeconds", seconds, detail))
        if seconds is not None and seconds > _MAX_SECONDS:
            detail = "may not specify a duration larger than 2^32 seconds"
            errors.append(FieldError.invalid("spec.expirationSeconds", seconds, detail))
        if errors:
            raise Invalid.of(_GROUP, "TokenRequest", "", errors)

    async def _find(
        self, call: Call, group: str, resource: str, namespace: str, name: str
    ) -> Object:
        key = ObjectKey(group, resource, call.info.cluster, namespace, name)
        entry = await self._store.get(key.path())
        if entry is None:
            raise NotFound.of(group, resource, name)
        return decode(entry.value, entry.revision)

    async def _bound(
        self, call: Call, reference: dict[str, Any] | None
    ) -> tuple[BoundObject | None, BoundObject | None, Object | None]:
        """Return the object a token is bound to, the node of a bound pod, and that pod."""
        if not reference:
            return None, None, None
        kind, name = reference.get("kind", ""), reference.get("name", "")
        if kind not in _BINDABLE:
            raise BadRequest(f'cannot bind token to object of type "{kind}"')
        namespace = "" if kind == "Node" else call.namespace
        obj = await self._find(call, "", _BINDABLE[kind], namespace, name)
        if kind == "Pod" and member(obj, "spec", "serviceAccountName") != call.info.name:
            # Else a token would outlive the pods of its account, bound to one of another.
            raise BadRequest(
                f'cannot bind token for serviceaccount "{call.info.name}" to pod running with '
                "different serviceaccount name."
            )
        uid = obj["metadata"]["uid"]
        if reference.get("uid") and reference["uid"] != uid:
            why = f"the UID in the bound object reference ({reference['uid']}) does not match "
            why += "the UID in record. The object might have been deleted and then recreated"
            raise Conflict.of("", _BINDABLE[kind], name, why)
        node_name = member(obj, "spec", "nodeName") if kind == "Pod" else None
        node = None
        if node_name:
            try:
                found = await self._find(call, "", "nodes", "", node_name)
                node = BoundObject("Node", node_name, found["metadata"]["uid"])
            except NotFound:
                node = BoundObject("Node", node_name, "")
        return BoundObject(kind, name, uid), node, obj if kind == "Pod" else None


class TokenReviews:
    """Says whose token this is."""

    def __init__(self, authentication: Authentication) -> None:
        self._authentication = authentication

    async def handle(self, call: Call) -> Answer:
        """Answer a TokenReview."""
        review = received(call)
        token = member(review, "spec", "token") or ""
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        audiences = tuple(member(review, "spec", "audiences") or ())
        found = await self._authentication.review(token, call.info.cluster, audiences)
        status: dict[str, Any] = {"authenticated": found.user is not None}
        if found.user is not None:
            status["user"] = user_info(found.user)
            if found.audiences:
                status["audiences"] = list(found.audiences)
        elif found.error:
            status["error"] = found.error
        review["status"] = status
        return answered(review)
