"""Which representation an answer takes: media type, and object, Table or metadata only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skerry.api.errors import NotAcceptable
from skerry.kit.caching import short_text_cache

Shape = Literal["object", "table", "metadata"]

_JSON_TYPES = frozenset({"application/json", "*/*", "application/*", ""})
_YAML_TYPES = frozenset({"application/yaml", "text/yaml", "application/x-yaml"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_SHAPES: dict[str, Shape] = {
    "Table": "table",
    "PartialObjectMetadata": "metadata",
    "PartialObjectMetadataList": "metadata",
}


@dataclass(frozen=True, slots=True)
class Negotiated:
    """What was agreed: ``yaml`` or JSON, and the shape of objects."""

    yaml: bool = False
    shape: Shape = "object"


_PLAIN = Negotiated()


@short_text_cache(256)
def negotiate(accept: str) -> Negotiated:
    """Return the first clause of an Accept header that can be served."""
    return _first_served(accept, tables=True)


@short_text_cache(64)
def negotiate_without_tables(accept: str) -> Negotiated:
    """Return the same for answers that cannot be Tables."""
    return _first_served(accept, tables=False)


def _first_served(accept: str, *, tables: bool) -> Negotiated:
    """Return the first clause that can be served.

    Protobuf is answered with JSON, which every client that asks for it also reads. A clause that
    asks for a shape we do not know is passed over, as Kubernetes does, so that clients may list
    newer ones first; so is one that asks for a Table where none is to be had (*tables*).
    """
    if not accept:
        return _PLAIN
    protobuf = False
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        media = media.lower()
        shape = _shape(parameters)
        if shape is None or (shape == "table" and not tables):
            continue
        if media in _JSON_TYPES:
            return Negotiated(shape=shape)
        if media in _YAML_TYPES:
            return Negotiated(yaml=True, shape=shape)
        protobuf = protobuf or media == _PROTOBUF
    if protobuf:
        return _PLAIN
    raise NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf"
    )


def _shape(parameters: list[str]) -> Shape | None:
    values = dict(p.split("=", 1) for p in parameters if "=" in p)
    if "as" not in values:
        return "object"
    known = values.get("g", "") == "meta.k8s.io" and values.get("v", "") in ("v1", "v1beta1")
    return _SHAPES.get(values["as"]) if known else None
