"""Which representation an answer takes: media type, and object, Table or metadata only."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
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


@dataclass(frozen=True, slots=True)
class _Clause:
    """One of the media types that a client takes, with its parameters and how well it is liked."""

    media: str
    parameters: dict[str, str]

    @property
    def order(self) -> tuple[float, bool, bool]:
        """Sort key: quality first, then a named type before any type of a family, or any at all."""
        try:
            quality = float(self.parameters.get("q", "1"))
        except ValueError:
            quality = 0.0
        return (
            -quality if isfinite(quality) else 0.0,
            self.media.startswith("*"),
            self.media.endswith("*"),
        )


@short_text_cache(256)
def negotiate(accept: str) -> Negotiated:
    """Return the clause of an Accept header that is liked best of those that can be served."""
    return _best_served(accept, tables=True)


@short_text_cache(64)
def negotiate_without_tables(accept: str) -> Negotiated:
    """Return the same for answers that cannot be Tables."""
    return _best_served(accept, tables=False)


def _best_served(accept: str, *, tables: bool) -> Negotiated:
    """Return the clause that is liked best of those that can be served.

    Protobuf is answered with JSON, which every client that asks for it also reads. A clause that
    asks for a shape we do not know is passed over, as Kubernetes does, so that clients may list
    newer ones first; so is one that asks for a Table where none is to be had (*tables*).
    """
    if not accept:
        return _PLAIN
    protobuf: Negotiated | None = None
    for clause in sorted(map(_clause, accept.split(",")), key=lambda clause: clause.order):
        shape = _shape(clause.parameters)
        if shape is None or (shape == "table" and not tables):
            continue
        if clause.media in _JSON_TYPES:
            return Negotiated(shape=shape)
        if clause.media in _YAML_TYPES:
            return Negotiated(yaml=True, shape=shape)
        if clause.media == _PROTOBUF and protobuf is None:
            protobuf = Negotiated(shape=shape)
    if protobuf is not None:
        return protobuf
    raise NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf"
    )


def _clause(text: str) -> _Clause:
    media, *parameters = (part.strip() for part in text.split(";"))
    named = (parameter.split("=", 1) for parameter in parameters if "=" in parameter)
    return _Clause(media.lower(), {name.strip(): value.strip() for name, value in named})


def _shape(values: dict[str, str]) -> Shape | None:
    if "as" not in values:
        return "object"
    known = values.get("g", "") == "meta.k8s.io" and values.get("v", "") in ("v1", "v1beta1")
    return _SHAPES.get(values["as"]) if known else None
