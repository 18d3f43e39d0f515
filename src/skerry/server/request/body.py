"""Request bodies: JSON, YAML or protobuf in, a dict out, or a clear refusal."""

from __future__ import annotations

from typing import Any

import orjson

from skerry.api.errors import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from skerry.api.objects import Object
from skerry.logic.machinery import protobuf
from skerry.logic.machinery.decoding import (
    DecodeError,
    LimitExceeded,
    Limits,
    decode_json,
    decode_yaml,
    refuse_size,
)
from skerry.logic.machinery.decoding.limits import DEFAULT_LIMITS
from skerry.logic.machinery.schema import duplicate_keys
from skerry.logic.machinery.type_meta import NO_TYPE, no_object, unrecognized

JSON = "application/json"
_PLAIN_JSON = frozenset(("", JSON))
_YAML_TYPES = frozenset({"application/yaml", "text/yaml", "application/x-yaml"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"
# Options of a delete, evictions, bindings, scales, reviews and requests for tokens are read on the
# loop, and are never this large.
_MAX_OPTIONS_BYTES = 256 * 1024
OPTIONS_LIMITS = Limits(nodes=2000, depth=50)
_NO_JSON = "error converting YAML to JSON"
_WANTED = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json, application/yaml, application/vnd.kubernetes.protobuf"
)


def media_type(content_type: str) -> str:
    """Return the bare, lower-case media type of a Content-Type header."""
    return content_type.split(";", 1)[0].strip().lower()


def is_json(content_type: str) -> bool:
    """Tell whether a body is JSON, which it also is where nothing is said."""
    return content_type in _PLAIN_JSON or media_type(content_type) in _PLAIN_JSON


def require_encodable(obj: Object) -> None:
    """Refuse an object of numbers that JSON has no form for, which YAML and protobuf can say."""
    try:
        orjson.dumps(obj)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise BadRequest(f"the object provided cannot be encoded as JSON: {error}") from error


def decode_body(
    body: bytes,
    content_type: str,
    limits: Limits = DEFAULT_LIMITS,
    repeated: list[str] | None = None,
    kind: str = "Object",
) -> Object:
    """Return the object a create or update carries, which is to be a *kind*.

    *repeated* is given a sentence for each key that YAML has twice in a mapping.
    """
    media = content_type if content_type in _PLAIN_JSON else media_type(content_type)
    if media in _PLAIN_JSON or media in _YAML_TYPES:
        try:
            found = (
                decode_json(body, limits)
                if media in _PLAIN_JSON
                else _json_or_yaml(body, limits, repeated)
            )
        except LimitExceeded as error:
            raise _too_large(error) from error
        except DecodeError as error:
            why = f"{NO_TYPE if media in _PLAIN_JSON else _NO_JSON}: {error}"
            raise BadRequest(unrecognized(kind, why, body)) from error
        # As in Go, null is an object of which nothing was said.
        if found is not None and not isinstance(found, dict):
            raise BadRequest(unrecognized(kind, no_object(found), body))
        return found or {}
    if media == _PROTOBUF:
        return _parse_protobuf(body, limits)
    raise UnsupportedMediaType(_WANTED)


def decode_options(body: bytes, content_type: str, kind: str = "Object") -> Object:
    """Return the object that tells how something is to be done, or asks a question: a small one."""
    if len(body) > _MAX_OPTIONS_BYTES:
        raise RequestEntityTooLarge(
            f"Request entity too large: {len(body)} bytes: want at most {_MAX_OPTIONS_BYTES}"
        )
    return decode_body(body, content_type, OPTIONS_LIMITS, kind=kind)


def parse_json(body: bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Return what JSON *body* holds, refusing what is malformed or exceeds a limit."""
    try:
        return decode_json(body, limits)
    except LimitExceeded as error:
        raise _too_large(error) from error
    except DecodeError as error:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type Object): {error}"
        ) from error


def parse_yaml(
    body: bytes, limits: Limits = DEFAULT_LIMITS, repeated: list[str] | None = None
) -> Any:
    """Return what YAML *body* holds, as JSON would have it: string keys, no dates."""
    try:
        return _json_or_yaml(body, limits, repeated)
    except LimitExceeded as error:
        raise _too_large(error) from error
    except DecodeError as error:
        raise BadRequest(f"{_NO_JSON}: {error}") from error


def _json_or_yaml(body: bytes, limits: Limits, repeated: list[str] | None) -> Any:
    """Read YAML; programs send JSON, which is YAML too, and is read thirty times as fast."""
    if body.startswith(b"{"):
        try:
            found = decode_json(body, limits)
        except LimitExceeded:
            raise
        except DecodeError:
            return decode_yaml(body, limits, repeated)
        if repeated is None or not duplicate_keys(body, found):
            return found
    return decode_yaml(body, limits, repeated)


def _parse_protobuf(body: bytes, limits: Limits) -> Object:
    try:
        document = protobuf.decode(body)
        refuse_size(document, limits)
    except LimitExceeded as error:
        raise _too_large(error) from error
    except ValueError as error:
        raise BadRequest(f"the object provided is not a valid protobuf: {error}") from error
    return document


def _too_large(error: LimitExceeded) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: the object provided: {error}")


def as_object(document: Any) -> Object:
    """Return *document* if it is an object at all."""
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise BadRequest(f"the object provided is unrecognized (must be of type Object): {kind}")
    return document
