"""Objects as bytes: encoded once per write, spliced per read.

A stored value is the object's JSON without its resourceVersion, which nobody knows before the
commit. Two leading bytes say where in the JSON it belongs, so that reading an object is two
slices and a join, and a list or a watch never decodes anything it does not have to look into.

    value = <offset, big endian u16> <JSON ... "metadata":{ | ... }>
                                                          ^ offset
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
import orjson

from skerry.api.objects import Object
from skerry.kit.invariant import invariant

_METADATA = b'"metadata":{'
_HEAD = 2
_LARGE = 64 * 1024

T = TypeVar("T")


def encode(obj: Object) -> bytes:
    """Return the stored form of *obj*; its resourceVersion, if any, is left out."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    ordered: Object = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata,
    }
    for key, member in obj.items():
        if key not in ordered:
            ordered[key] = member
    text = orjson.dumps(ordered)
    offset = text.index(_METADATA) + len(_METADATA)
    invariant(metadata, "an object without metadata cannot be stored")
    # The concatenation also sheds the spare room of orjson's buffer, which would be kept.
    return offset.to_bytes(_HEAD, "big") + text


def wire(value: bytes, revision: int) -> bytes:
    """Return the JSON of a stored object as clients see it."""
    cut = _HEAD + (value[0] << 8 | value[1])
    return b'%b"resourceVersion":"%d",%b' % (value[_HEAD:cut], revision, value[cut:])


def item_wire(value: bytes, revision: int) -> bytes:
    """Return the JSON of a stored object without ``apiVersion`` and ``kind``.

    Items of a list of built-in kinds have neither: the list says what they are.
    """
    cut = _HEAD + (value[0] << 8 | value[1])
    return b'{"metadata":{"resourceVersion":"%d",%b' % (revision, value[cut:])


def decode(value: bytes, revision: int) -> Object:
    """Return a stored object as a dict of its own."""
    obj: Object = loads(memoryview(value)[_HEAD:])
    obj["metadata"]["resourceVersion"] = str(revision)
    return obj


def loads(text: bytes | memoryview) -> Any:
    """Return what JSON *text*, our own or checked before, holds.

    While a large one is decoded no garbage is looked for: every few hundred of the dicts and
    lists that are being made would begin a search through those made before, and none of them is
    garbage.
    """
    if len(text) <= _LARGE or not gc.isenabled():
        return orjson.loads(text)
    gc.disable()
    try:
        return orjson.loads(text)
    finally:
        gc.enable()


class Metadata(msgspec.Struct, gc=False):
    """What selectors and watches look at; the rest of metadata is skipped while decoding."""

    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    uid: str = ""


class _Envelope(msgspec.Struct, gc=False):
    metadata: Metadata


_envelope = msgspec.json.Decoder(_Envelope)


def decode_as(decoder: msgspec.json.Decoder[T], value: bytes) -> T:
    """Return what *decoder* looks for in a stored object; the rest is skipped, not built.

    What was stored is read, whatever it is: nulls that no version of ours stores any more count as
    absent. A server that could not read one object would not start again.
    """
    text = memoryview(value)[_HEAD:]
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(loads(text)), decoder.type)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value if each is not None]
    return value


def metadata_of(value: bytes) -> Metadata:
    """Return the metadata of a stored object without decoding the rest of it."""
    return decode_as(_envelope, value).metadata


class _RawEnvelope(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_raw_envelope = msgspec.json.Decoder(_RawEnvelope)
_PARTIAL = (
    b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'
    b'"metadata":{"resourceVersion":"%d",%b}'
)


def partial_wire(value: bytes, revision: int) -> bytes:
    """Return the JSON of a stored object's PartialObjectMetadata, cut out as it stands."""
    metadata = bytes(_raw_envelope.decode(memoryview(value)[_HEAD:]).metadata)
    return _PARTIAL % (revision, metadata[1:])


def dump(obj: Mapping[str, Any], *, pretty: bool = False) -> bytes:
    """Return *obj* as JSON, indented when a person asked for it."""
    if pretty:
        return orjson.dumps(obj, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return orjson.dumps(obj)
