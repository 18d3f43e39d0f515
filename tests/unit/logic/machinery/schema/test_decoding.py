"""What kube-apiserver's decoder says of wrong types and repeated keys."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.schema import (
    duplicate_fields,
    duplicate_keys,
    restoration_error,
    type_errors,
)
from tests.kit.machinery.schemas import builtin

QUANTITIES = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
HEAD = 'Deployment in version "v1" cannot be handled as a Deployment: '


def complaint(**spec: Any) -> str:
    schema = builtin().get("io.k8s.api.apps.v1.Deployment")
    found = type_errors(schema, {"kind": "Deployment", "spec": spec}, "Deployment", "v1")
    return found[0].removeprefix(HEAD) if found else ""


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "a", **fields}]}}


def test_a_wrong_scalar_names_struct_path_and_go_type() -> None:
    assert complaint(replicas="a") == (
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas "
        "of type int32"
    )


def test_numbers_that_do_not_fit_are_shown() -> None:
    assert "cannot unmarshal number 4294967296 into" in complaint(replicas=1 << 32)
    assert "cannot unmarshal number 1.5 into" in complaint(replicas=1.5)


def test_items_of_lists_are_named_without_their_index() -> None:
    assert complaint(template=container(image=1)) == (
        "json: cannot unmarshal number into Go struct field "
        "Container.spec.template.spec.containers.image of type string"
    )


def test_structs_and_lists_are_named_by_their_go_types() -> None:
    assert complaint(template=1).endswith("DeploymentSpec.spec.template of type v1.PodTemplateSpec")
    assert complaint(template={"spec": {"containers": {}}}).endswith(
        "PodSpec.spec.template.spec.containers of type []v1.Container"
    )
    assert complaint(template={"metadata": {"labels": {"a": 1}}}).endswith(
        "ObjectMeta.spec.template.metadata.labels of type string"
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"resources": {"limits": {"cpu": "one"}}},
            QUANTITIES,
        ),
        (
            {"livenessProbe": {"httpGet": {"port": True}}},
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ],
)
def test_types_that_decode_themselves_speak_for_themselves(
    fields: dict[str, Any], expected: str
) -> None:
    assert complaint(template=container(**fields)) == expected


def test_times_and_bytes_are_read() -> None:
    pod = builtin().get("io.k8s.api.core.v1.Pod")
    found = type_errors(pod, {"metadata": {"creationTimestamp": "yesterday"}}, "Pod", "v1")
    assert found[0].endswith(
        'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": '
        'cannot parse "yesterday" as "2006"'
    )
    secret = builtin().get("io.k8s.api.core.v1.Secret")
    assert type_errors(secret, {"data": {"a": "aGk="}}, "Secret", "v1") == []
    found = type_errors(secret, {"data": {"a": "a!"}}, "Secret", "v1")
    assert found[0].endswith("illegal base64 data at input byte 1")


def test_null_and_unknown_fields_fit_everywhere() -> None:
    assert complaint(replicas=None, template=None, unknown={"x": []}) == ""


def test_repeated_keys_are_found_at_any_depth() -> None:
    body = b'{"spec":{"a":1,"a":2,"l":[{"b":1,"b":1}]},"spec":{"c":1}}'
    assert duplicate_keys(body) == ["spec", "spec.a", "spec.l[0].b"]
    assert duplicate_fields(b'{"a":1,"a":1,"a":2}') == ['duplicate field "a"']


def test_text_that_is_no_json_repeats_nothing() -> None:
    assert duplicate_keys(b"{") == []
    assert duplicate_keys(b"[" * 100_000) == []


NAMES = st.sampled_from(["a", "b", 'q":', "\\u0022", "é", 'x\\"'])
JSON_TEXT = st.recursive(
    st.sampled_from(["1", "null", '"t"', '"a\\":"', '"\\u0022:"', '"\\\\"', "[]", "{}"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.lists(st.tuples(NAMES, st.sampled_from(["", " ", "\n\t"]), inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f"{json.dumps(k)}{gap}:{v}" for k, gap, v in pairs) + "}"
        ),
    ),
    max_leaves=12,
)


@given(JSON_TEXT)
def test_knowing_what_a_body_was_decoded_to_never_hides_a_repeated_key(text: str) -> None:
    body = text.encode()
    assert duplicate_keys(body, orjson.loads(body)) == duplicate_keys(body)


def restoration(**spec: Any) -> str:
    schema = builtin().get("io.k8s.api.apps.v1.Deployment")
    return restoration_error(schema, {"kind": "Deployment", "spec": spec})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": 1}, ""),
        ({"replicas": "a"}, "unrecognized type: int32"),
        ({"replicas": True}, "unrecognized type: int32"),
        ({"replicas": 1.5}, "cannot convert float64 to int32"),
        ({"paused": 1}, "unrecognized type: bool"),
        ({"template": 1}, "cannot restore struct from: int64"),
        ({"template": {"metadata": {"labels": "a"}}}, "cannot restore map from string"),
        ({"template": {"metadata": {"labels": {"a": 1}}}}, "cannot convert int64 to string"),
        ({"template": {"metadata": {"labels": {"a": []}}}}, "unrecognized type: string"),
        ({"template": {"spec": {"containers": {}}}}, "cannot restore slice from map"),
        ({"template": container(resources={"limits": {"cpu": "one"}})}, QUANTITIES),
    ],
)
def test_the_converter_says_what_it_cannot_restore_and_from_what(
    spec: dict[str, Any], expected: str
) -> None:
    assert restoration(**spec) == expected


def test_bytes_are_restored_from_text_alone() -> None:
    schema = builtin().get("io.k8s.api.core.v1.Secret")
    assert restoration_error(schema, {"data": {"a": 1}}) == "cannot restore slice from int64"
    assert restoration_error(schema, {"data": {"a": "!"}}) == (
        "error decoding from json: illegal base64 data at input byte 0"
    )
