"""Protobuf bodies mean the same as the JSON their client would have sent.

``samples.json`` holds what client-go 0.32 writes for one object of many kinds, as protobuf
(in hexadecimal) and as JSON.
"""

from __future__ import annotations

import base64
import math
import struct
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.api.kinds import GroupVersionKind
from skerry.logic.machinery.protobuf import decode, encode
from skerry.logic.machinery.protobuf.decode import DEEPEST, MAGIC
from skerry.logic.machinery.protobuf.table import Field, fields_of
from skerry.wire.protobuf import (
    delimited_field,
    fixed64_field,
    number_field,
    varint,
)
from tests.kit.machinery.kinds import BUILT_IN_KINDS

SAMPLES = orjson.loads(Path(__file__).with_name("samples.json").read_bytes())
KINDS = sorted(
    (api_version, kind) for api_version, kinds in BUILT_IN_KINDS.items() for kind in kinds
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["name"] for sample in SAMPLES])
def test_what_client_go_sends_as_protobuf_is_what_it_sends_as_json(sample: dict[str, Any]) -> None:
    decoded = decode(bytes.fromhex(sample["protobuf"]))
    # Controller revisions carry an arbitrary document whose nulls are its own.
    assert without_nulls(decoded) == without_nulls(sample["json"])


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["name"] for sample in SAMPLES])
def test_what_was_decoded_can_be_encoded_again(sample: dict[str, Any]) -> None:
    decoded = decode(bytes.fromhex(sample["protobuf"]))
    assert decode(encode(decoded)) == decoded


# ---- any object of any kind -------------------------------------------------------------------

_TEXT = st.text(max_size=5)
_JSON = st.dictionaries(_TEXT, st.integers(-5, 5) | _TEXT | st.booleans(), max_size=2)
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": _TEXT,
    "bool": st.booleans(),
    "int": st.integers(-(2**63), 2**63 - 1),
    "uint": st.integers(0, 2**64 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "bytes": st.binary(max_size=4).map(lambda raw: base64.b64encode(raw).decode()),
    "list": st.lists(_TEXT, max_size=2),
    "runtime.RawExtension": _JSON,
    "apiextensions.v1.JSON": _JSON,
    "meta.v1.FieldsV1": _JSON,
    "resource.Quantity": st.sampled_from(["1", "250m", "64Mi"]),
    "intstr.IntOrString": st.integers(-(2**31), 2**31 - 1) | _TEXT,
    "meta.v1.Time": st.sampled_from(["2025-03-01T12:00:00Z", "1969-12-31T23:59:59Z"]),
    "meta.v1.MicroTime": st.sampled_from(["2025-03-01T12:00:00.123456Z"]),
    "apiextensions.v1.JSONSchemaPropsOrArray": st.just({"type": "string"}),
    "apiextensions.v1.JSONSchemaPropsOrBool": st.booleans() | st.just({"type": "string"}),
    "apiextensions.v1.JSONSchemaPropsOrStringArray": st.lists(_TEXT, max_size=2),
}


@st.composite
def messages(draw: st.DrawFn, name: str, depth: int = 0) -> dict[str, Any]:
    fields = list(fields_of(name).values())
    chosen = draw(st.lists(st.sampled_from(fields), max_size=3, unique=True)) if fields else []
    result: dict[str, Any] = {}
    for field in chosen:
        if depth < 4 or field.type in _SCALARS:
            result.update(draw(_field_values(field, depth)))
    return result


def _is_not_zero(value: Any) -> bool:
    return value not in ("", 0, False)


def _field_values(field: Field, depth: int) -> st.SearchStrategy[dict[str, Any]]:
    value: st.SearchStrategy[Any] = (
        _SCALARS[field.type] if field.type in _SCALARS else messages(field.type, depth + 1)
    )
    if field.inline:
        return value
    if field.is_map:
        value = st.dictionaries(_TEXT, value, min_size=1, max_size=2)
    elif field.repeated:
        value = st.lists(value, min_size=1, max_size=2)
    elif field.omits_zero:
        value = value.filter(_is_not_zero)
    return st.fixed_dictionaries({field.name: value})


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    api_version, kind = draw(st.sampled_from(KINDS))
    body = draw(messages(BUILT_IN_KINDS[api_version][kind]))
    return {"apiVersion": api_version, "kind": kind, **body}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects())
def test_decoding_undoes_encoding(obj: dict[str, Any]) -> None:
    assert decode(encode(obj)) == obj


# ---- bodies nobody should send ----------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_decoded_or_refused(tail: bytes) -> None:
    pod = delimited_field(1, delimited_field(1, b"v1") + delimited_field(2, b"Pod"))
    for body in (tail, MAGIC + tail, MAGIC + pod + delimited_field(2, tail)):
        try:
            decode(body)
        except ValueError:
            continue


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(SAMPLES), st.integers(0, 10_000), st.integers(0, 255), st.booleans())
def test_damaged_bodies_are_decoded_or_refused(
    sample: dict[str, Any], position: int, byte: int, cut: bool
) -> None:
    body = bytearray.fromhex(sample["protobuf"])
    position %= len(body)
    body[position] = byte
    try:
        decode(bytes(body[:position] if cut else body))
    except ValueError:
        return


def body_of(api_version: str, kind: str, raw: bytes = b"", rest: bytes = b"") -> bytes:
    type_meta = delimited_field(1, api_version.encode()) + delimited_field(2, kind.encode())
    return MAGIC + delimited_field(1, type_meta) + delimited_field(2, raw) + rest


def schema_field(schema: bytes) -> bytes:
    """Return the fields of a CustomResourceDefinition with one version of this schema."""
    validation = delimited_field(4, delimited_field(1, schema))
    return delimited_field(2, delimited_field(7, delimited_field(1, b"v1") + validation))


# An infinite maximum.
NOT_A_NUMBER = schema_field(fixed64_field(9, struct.pack("<d", math.inf)))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "does not appear to be a protobuf message"),
        (body_of("example.com/v1", "Widget"), 'no kind "Widget" is registered for version'),
        (body_of("v1", ""), "'Kind' is missing"),
        (body_of("v1", "Pod", b"\x0a\xff"), "ends within a number"),
        (body_of("v1", "Pod", b"\x0a\x05ab"), "claims 5 bytes where 2 are left"),
        (body_of("v1", "Pod", number_field(1, 3)), "wrong wire type"),
        (body_of("v1", "Pod", b"\x0b"), "unknown wire type 3"),
        (body_of("v1", "Pod", b"\x02"), "field number 0"),
        (body_of("v1", "Pod", b"\xff" * 11), "more than 10 bytes"),
        (body_of("v1", "Pod", rest=delimited_field(3, b"gzip")), "encoding 'gzip'"),
        (
            body_of("v1", "ConfigMap", delimited_field(1, delimited_field(1, b"\xff"))),
            "not valid UTF-8",
        ),
        (
            body_of("apps/v1", "ControllerRevision", delimited_field(2, delimited_field(1, b"{"))),
            "embedded JSON cannot be read",
        ),
        (
            body_of(
                "v1",
                "ConfigMap",
                delimited_field(1, delimited_field(8, number_field(1, 2**62))),
            ),
            "no calendar has",
        ),
        (
            body_of("v1", "ConfigMap", delimited_field(2, number_field(1, 5))),
            "an entry of the wrong wire type",
        ),
        (
            body_of("apiextensions.k8s.io/v1", "CustomResourceDefinition", NOT_A_NUMBER),
            "not a number JSON has",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_with_a_reason(body: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(body)


def test_a_schema_nested_without_end_is_refused() -> None:
    schema = b""
    for _ in range(DEEPEST + 1):
        schema = delimited_field(26, schema)  # "not"
    body = body_of("apiextensions.k8s.io/v1", "CustomResourceDefinition", schema_field(schema))
    with pytest.raises(ValueError, match="nested more than"):
        decode(body)


def test_lists_within_lists_without_end_are_refused() -> None:
    body = body_of("v1", "List")
    for _ in range(DEEPEST + 1):
        body = body_of("v1", "List", delimited_field(2, delimited_field(1, body)))
    with pytest.raises(ValueError, match="nested more than"):
        decode(body)


def test_a_zero_time_within_a_map_survives() -> None:
    obj = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "status": {"disruptedPods": {"p": None}},
    }
    assert decode(encode(obj)) == obj


def test_an_embedded_document_may_be_empty() -> None:
    body = body_of("apps/v1", "ControllerRevision", delimited_field(2, b""))
    assert decode(body) == {"apiVersion": "apps/v1", "kind": "ControllerRevision"}


def test_an_embedded_protobuf_object_is_decoded_too() -> None:
    inner = encode({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}})
    body = body_of("v1", "List", delimited_field(2, delimited_field(1, inner)))
    assert decode(body)["items"] == [{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}]


def test_the_requests_type_stands_in_for_a_missing_one() -> None:
    default = GroupVersionKind("apps", "v1", "DeleteOptions")
    decoded = decode(MAGIC + delimited_field(2, number_field(1, 30)), default)
    assert decoded == {
        "apiVersion": "apps/v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 30,
    }


def test_options_are_understood_in_any_group() -> None:
    body = body_of("example.com/v1", "DeleteOptions", number_field(1, 0))
    assert decode(body)["gracePeriodSeconds"] == 0


def test_fields_of_newer_clients_are_skipped() -> None:
    body = body_of("v1", "ConfigMap", delimited_field(999, b"new"))
    assert decode(body) == {"apiVersion": "v1", "kind": "ConfigMap"}


def test_packed_numbers_are_understood() -> None:
    codes = delimited_field(3, varint(1) + varint(137))
    rule = delimited_field(1, delimited_field(2, codes))
    spec = delimited_field(2, delimited_field(11, rule))
    decoded = decode(body_of("batch/v1", "Job", spec))
    rules = decoded["spec"]["podFailurePolicy"]["rules"]
    assert rules[0]["onExitCodes"]["values"] == [1, 137]


@pytest.mark.parametrize(
    "obj",
    [
        {"apiVersion": "v1", "kind": "Widget"},
        {"apiVersion": "v1", "kind": "Pod", "spec": "x"},
        {"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": 5}},
        {"apiVersion": "v1", "kind": "Secret", "data": {"a": "not base64!"}},
    ],
)
def test_an_object_that_does_not_fit_cannot_be_encoded(obj: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode(obj)
