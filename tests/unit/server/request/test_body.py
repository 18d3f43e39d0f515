"""Bodies of requests: three notations in, one object out, or a refusal that says why."""

from __future__ import annotations

import pytest

from skerry.api.errors import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from skerry.logic.machinery import protobuf
from skerry.logic.machinery.decoding.limits import Limits
from skerry.server.request.body import (
    as_object,
    decode_body,
    decode_options,
    media_type,
    parse_yaml,
)

CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a"},
    "data": {"k": "v"},
}
PROTOBUF = "application/vnd.kubernetes.protobuf"
FEW = Limits(nodes=3)


@pytest.mark.parametrize(
    ("header", "bare"),
    [
        ("application/json", "application/json"),
        ("Application/JSON; charset=utf-8", "application/json"),
        (" text/yaml ;x=y;z", "text/yaml"),
        ("", ""),
    ],
)
def test_parameters_and_case_of_a_media_type_do_not_matter(header: str, bare: str) -> None:
    assert media_type(header) == bare


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (b'{"a": 1}', ""),
        (b'{"a": 1}', "application/json"),
        (b"a: 1", "application/yaml"),
        (b'{"a": 1}', "application/yaml"),
        (b"{a: 1}", "text/yaml"),
    ],
)
def test_notations_mean_the_same(body: bytes, header: str) -> None:
    assert decode_body(body, header) == {"a": 1}


def test_protobuf_is_an_object_too() -> None:
    found = decode_body(protobuf.encode(CONFIG_MAP), PROTOBUF)
    assert {key: found[key] for key in ("kind", "data")} == {
        "kind": "ConfigMap",
        "data": {"k": "v"},
    }


def test_null_is_an_object_of_which_nothing_was_said() -> None:
    assert decode_body(b"null", "application/json") == {}


@pytest.mark.parametrize("header", ["text/plain", "application/xml", "json"])
def test_another_notation_is_refused_with_those_we_know(header: str) -> None:
    with pytest.raises(UnsupportedMediaType, match=r"application/vnd\.kubernetes\.protobuf"):
        decode_body(b"x", header)


@pytest.mark.parametrize(
    ("body", "header", "why"),
    [
        (b"{", "", "the object provided is unrecognized"),
        (b"[1]", "", "must be of type Object"),
        (b'"text"', "application/yaml", "must be of type Object"),
        (b"a: [", "application/yaml", "error converting YAML to JSON"),
        (b"junk", PROTOBUF, "is not a valid protobuf"),
    ],
)
def test_what_is_no_object_is_a_bad_request(body: bytes, header: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        decode_body(body, header)


def test_what_cannot_be_read_is_shown_with_the_kind_it_should_be() -> None:
    with pytest.raises(BadRequest) as refused:
        decode_body(b"apiVersion: v1\nkind: Pod\nmetadata: {}", "", kind="Namespace")
    text = str(refused.value)
    head = "the object provided is unrecognized (must be of type Namespace): couldn't get "
    assert text.startswith(f"{head}version/kind; json parse error: ")
    assert text.endswith(" (61706956657273696f6e3a2076310a6b696e643a20506f640a6d65746164 ...)")


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (b'{"a": 1, "b": 2, "c": 3}', ""),
        (b"{a: 1, b: 2, c: 3}", "application/yaml"),
        (protobuf.encode(CONFIG_MAP), PROTOBUF),
    ],
)
def test_a_document_with_too_much_in_it_is_too_large(body: bytes, header: str) -> None:
    with pytest.raises(RequestEntityTooLarge, match="Request entity too large"):
        decode_body(body, header, FEW)


def test_options_are_small() -> None:
    assert decode_options(b'{"gracePeriodSeconds": 0}', "") == {"gracePeriodSeconds": 0}
    with pytest.raises(RequestEntityTooLarge):
        decode_options(b'{"a": "' + b"x" * (256 * 1024) + b'"}', "")
    with pytest.raises(RequestEntityTooLarge):
        decode_options(b'{"a": [' + b"1," * 3000 + b"1]}", "")


def test_keys_that_yaml_has_twice_are_named() -> None:
    repeated: list[str] = []
    assert parse_yaml(b"{a: 1, a: 2}", repeated=repeated) == {"a": 2}
    assert len(repeated) == 1
    same: list[str] = []
    assert parse_yaml(b'{"a": 1, "a": 2}', repeated=same) == {"a": 2}
    assert len(same) == 1
    assert parse_yaml(b'{"a": 1}', repeated=[]) == {"a": 1}


def test_only_an_object_is_one() -> None:
    assert as_object({}) == {}
    with pytest.raises(BadRequest, match="int"):
        as_object(5)
