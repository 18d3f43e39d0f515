"""Objects as protobuf: what is written, what is left out, what cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.protobuf import decode, encode
from skerry.logic.machinery.protobuf.decode import MAGIC


def config_map(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **fields}


def definition(schema: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True,
               "schema": {"openAPIV3Schema": schema}}  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "a"},
        "spec": {"group": "g", "versions": [version]},
    }


def schema_of(decoded: Any) -> Any:
    return decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_a_body_begins_with_the_magic_of_kubernetes() -> None:
    assert encode(config_map()).startswith(MAGIC)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8)))
def test_maps_survive_whatever_their_order(data: dict[str, str]) -> None:
    body = encode(config_map(data=data))
    assert (decode(body).get("data") or {}) == data
    assert encode(config_map(data=dict(reversed(data.items())))) == body


@given(st.binary(max_size=20))
def test_bytes_travel_as_bytes_and_are_text_again(value: bytes) -> None:
    import base64

    text = base64.b64encode(value).decode()
    body = encode(config_map(binaryData={"k": text}))
    assert value in body
    assert decode(body)["binaryData"] == {"k": text}


def test_null_and_unknown_fields_are_left_out() -> None:
    assert encode(config_map(data=None, unheard_of=1)) == encode(config_map())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "number", "maximum": 1.5, "default": {"deep": [1, None]}},
    ],
)
def test_schemas_that_are_one_of_several_things_survive(schema: dict[str, Any]) -> None:
    assert schema_of(decode(encode(definition(schema)))) == schema


def test_additional_properties_may_be_a_truth() -> None:
    for truth in (True, False):
        schema = {"type": "object", "additionalProperties": truth}
        assert schema_of(decode(encode(definition(schema))))["additionalProperties"] is truth


@pytest.mark.parametrize(
    "obj",
    [
        config_map(data=5),
        config_map(data={"k": 5}),
        config_map(data=["k"]),
        config_map(metadata="text"),
        config_map(metadata={"generation": "many"}),
        config_map(metadata={"finalizers": 5}),
        config_map(binaryData={"k": "not base64!"}),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(obj: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"cannot encode|want an object|invalid literal|base64"):
        encode(obj)


def test_a_kind_that_is_not_built_in_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match='no kind "Thing" is registered for version "v1"'):
        encode({"apiVersion": "v1", "kind": "Thing"})
