"""Request bodies: JSON, YAML or protobuf in, a dict out, or a clear refusal."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson
import yaml

from skerry.api.errors import BadRequest, UnsupportedMediaType
from skerry.logic import protobuf
from skerry.logic.resource import Object

JSON = "application/json"
_YAML_TYPES = frozenset({"application/yaml", "text/yaml", "application/x-yaml"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"
# Deeper than any real object by far; recursion over what is kept stays harmless below it.
_DEEPEST = 200
_WANTED = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json, application/yaml, application/vnd.kubernetes.protobuf"
)


def media_type(content_type: str) -> str:
    """Return the bare, lower-case media type of a Content-Type header."""
    return content_type.split(";", 1)[0].strip().lower()


def decode_body(body: bytes, content_type: str) -> Object:
    """Return the object a create or update carries."""
    media = media_type(content_type)
    if media in ("", JSON):
        return as_object(parse_json(body))
    if media in _YAML_TYPES:
        return as_object(parse_yaml(body))
    if media == _PROTOBUF:
        try:
            return protobuf.decode(body)
        except ValueError as error:
            raise BadRequest(f"the object provided is not a valid protobuf: {error}") from error
    raise UnsupportedMediaType(_WANTED)


def parse_json(body: bytes) -> Any:
    """Return what JSON *body* holds, refusing what is malformed or nested out of all reason."""
    try:
        document = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type Object): {error}"
        ) from error
    # No text nests deeper than it has brackets; counting them costs nothing.
    if body.count(b"{") + body.count(b"[") > _DEEPEST:
        _refuse_depth(document)
    return document


def parse_yaml(body: bytes) -> Any:
    """Return what YAML *body* holds, as JSON would have it: string keys, no dates.

    Programs send JSON, which is YAML too, and is read thirty times as fast.
    """
    if body.startswith(b"{"):
        with contextlib.suppress(BadRequest):
            return parse_json(body)
    try:
        document = yaml.load(body, Loader=_JsonLoader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadRequest(f"error converting YAML to JSON: {error}") from error
    _refuse_depth(document)
    return document


def as_object(document: Any) -> Object:
    """Return *document* if it is an object at all."""
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise BadRequest(f"the object provided is unrecognized (must be of type Object): {kind}")
    return document


def _refuse_depth(document: Any) -> None:
    level = [document]
    for _ in range(_DEEPEST):
        level = [
            child
            for node in level
            for child in (
                node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
            )
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise BadRequest(f"the object provided is nested more than {_DEEPEST} levels deep")


class _JsonLoader(yaml.CSafeLoader):
    """YAML restricted to what JSON can say."""


_JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in pairs if tag != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _string_keyed(loader: yaml.CSafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
    loader.flatten_mapping(node)
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, bool):
            key = "true" if key else "false"
        elif not isinstance(key, str):
            key = str(key)
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_JsonLoader.add_constructor("tag:yaml.org,2002:map", _string_keyed)
