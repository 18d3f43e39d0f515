"""What an audit event at level Request has in it of the request's body.

Never what is secret: bodies about Secrets and tokens are left out whatever the policy says, and so
is a body that turns out to hold one though it was sent elsewhere. What is sent to a workload
through the server is no object of the server's. An event stays bounded: a body that is large, or
dear to read again, is left out, and an annotation says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from skerry.api.errors import ApiError
from skerry.server.http.message import Request
from skerry.server.request.body import decode_body, media_type, parse_json, parse_yaml
from skerry.server.request.info import RequestInfo

# On an event: why it has no requestObject.
OMITTED = "audit.edge.kcp.io/request-object-omitted"
_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_SECRET_TYPES = frozenset((("", "secrets"), ("authentication.k8s.io", "tokenreviews")))
_SECRET_KINDS = frozenset(("Secret", "SecretList", "TokenReview", "TokenRequest"))
_SECRET_SUBRESOURCES = frozenset((("serviceaccounts", "token"),))
# What passes through to nodes and pods.
_PASSED_ON = frozenset(("proxy", "exec", "attach", "portforward"))
# A few times what an ordinary object takes; reading it again costs a fraction of a millisecond.
_MAX_BYTES = 64 * 1024
# Block YAML is read a hundred times as slowly as JSON.
_MAX_YAML_BYTES = 8 * 1024
_REFUSED = frozenset((401, 403, 413, 415, 429))


def add_request_object(
    event: dict[str, Any],
    request: Request,
    info: RequestInfo,
    code: int,
    *,
    omit_managed_fields: bool,
) -> None:
    """Put the body of *request* into *event*, or the reason why it is not there."""
    if not request.body or info.verb not in _WRITES or code in _REFUSED:
        return
    if not info.is_resource or info.subresource in _PASSED_ON:
        return
    found, why = _object(request, info)
    if not why:
        shown = _without_managed_fields(found) if omit_managed_fields else found
        try:
            # Now, because a value that JSON cannot say must not spoil the event.
            event["requestObject"] = orjson.Fragment(orjson.dumps(shown))
        except TypeError:
            why = "not understood"
    if why:
        event["annotations"] = {**event["annotations"], OMITTED: why}


def _object(request: Request, info: RequestInfo) -> tuple[Any, str]:
    """Return the body, or in words why it is left out."""
    resource = info.resource.partition(":")[0]
    about_secrets = (info.group, resource) in _SECRET_TYPES
    if about_secrets or (resource, info.subresource) in _SECRET_SUBRESOURCES:
        return None, "secret"
    media = media_type(request.headers.get("content-type", ""))
    is_yaml = media.endswith("yaml") and not request.body.startswith(b"{")
    limit = _MAX_YAML_BYTES if is_yaml else _MAX_BYTES
    if len(request.body) > limit:
        return None, f"{len(request.body)} bytes are more than {limit}"
    try:
        found = _decoded(request.body, media)
    except ApiError:
        return None, "not understood"
    return (None, "secret") if _holds_secret(found) else (found, "")


def _decoded(body: bytes, media: str) -> Any:
    if media.endswith("+json"):
        return parse_json(body)
    if media.endswith("+yaml"):
        return parse_yaml(body)
    return decode_body(body, media)


def _holds_secret(document: Any) -> bool:
    """Tell whether a document is a Secret or token, or a list with one in it."""
    if not isinstance(document, Mapping):
        return False
    if document.get("kind") in _SECRET_KINDS:
        return True
    items = document.get("items")
    return isinstance(items, list) and any(map(_holds_secret, items))


def _without_managed_fields(document: Any) -> Any:
    """Return *document* without the bookkeeping of server-side apply, its items' included."""
    if not isinstance(document, Mapping):
        return document
    found = dict(document)
    metadata = found.get("metadata")
    if isinstance(metadata, Mapping) and "managedFields" in metadata:
        found["metadata"] = {k: v for k, v in metadata.items() if k != "managedFields"}
    items = found.get("items")
    if isinstance(items, list):
        found["items"] = [_without_managed_fields(each) for each in items]
    return found
