"""Namespaces, ConfigMaps and Secrets."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from tests.kit.machinery.objects import (
    created,
    errors_of,
    named,
    resource,
    update_errors,
)

NAMESPACES = resource("namespaces")
CONFIG_MAPS = resource("configmaps")
SECRETS = resource("secrets")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_namespace_is_active_labelled_and_finalized_by_kubernetes() -> None:
    new = created(NAMESPACES, named(NAMESPACES))
    assert new["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert new["spec"]["finalizers"] == ["kubernetes"]
    assert new["status"] == {"phase": "Active"}


def test_a_namespaces_finalizers_change_only_through_finalize() -> None:
    old = created(NAMESPACES, named(NAMESPACES))
    new = {**old, "spec": {"finalizers": []}}
    NAMESPACES.prepare_update(new, old)
    assert new["spec"]["finalizers"] == ["kubernetes"]
    bad = named(NAMESPACES, spec={"finalizers": ["odd"]})
    assert errors_of(NAMESPACES, bad) == [
        (
            'spec.finalizers[0]: Invalid value: "odd": name is neither a standard finalizer '
            "name nor "
            "is it fully qualified"
        )
    ]


def test_a_namespaces_phase_follows_its_deletion() -> None:
    dying: Object = {"metadata": {"deletionTimestamp": "t"}, "status": {"phase": "Active"}}
    assert "may only be 'Terminating' if `deletionTimestamp` is not empty" in str(
        NAMESPACES.validate_status(dying, {})[0]
    )
    assert NAMESPACES.validate_status({"status": {"phase": "Active"}}, {}) == []
    assert NAMESPACES.selectable_fields["status.phase"](dying) == "Active"


def test_config_map_keys_are_file_names_used_once() -> None:
    bad = named(CONFIG_MAPS, data={"a/b": "", "c": ""}, binaryData={"c": ""})
    errors = errors_of(CONFIG_MAPS, bad)
    assert errors[0].startswith('data[a/b]: Invalid value: "a/b": a valid config key')
    assert errors[1] == 'data[c]: Invalid value: "c": duplicate of key present in binaryData'


def test_config_maps_and_secrets_have_a_size() -> None:
    big = "x" * (1024 * 1024 + 1)
    assert errors_of(CONFIG_MAPS, named(CONFIG_MAPS, data={"a": big})) == [
        ": Too long: may not be more than 1048576 bytes"
    ]
    assert errors_of(SECRETS, named(SECRETS, data={"a": encoded(big)})) == [
        "data: Too long: may not be more than 1048576 bytes"
    ]
    assert errors_of(SECRETS, named(SECRETS, data={"a": encoded(big[1:])})) == []


@pytest.mark.parametrize("kind", ["configmaps", "secrets"])
def test_what_is_immutable_stays(kind: str) -> None:
    found = resource(kind)
    old = named(found, data={"a": "eA=="}, immutable=True)
    assert update_errors(found, old, {"metadata": {"labels": {"a": "b"}}}) == []
    assert update_errors(found, old, {"data": {"a": "eQ=="}, "immutable": False}) == [
        "immutable: Forbidden: field is immutable when `immutable` is set",
        "data: Forbidden: field is immutable when `immutable` is set",
    ]


@given(st.dictionaries(st.sampled_from("abc"), st.text(max_size=5)))
def test_plain_text_becomes_data_and_wins(plain: dict[str, str]) -> None:
    secret = named(SECRETS, data={"a": encoded("old")}, stringData=plain)
    new = created(SECRETS, secret)
    assert "stringData" not in new
    assert new["type"] == "Opaque"
    for key, value in plain.items():
        assert base64.b64decode(new["data"][key]).decode() == value


@pytest.mark.parametrize(
    ("kind", "data", "errors"),
    [
        (
            "kubernetes.io/tls",
            {},
            ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
        ),
        ("kubernetes.io/tls", {"tls.crt": "", "tls.key": ""}, []),
        (
            "kubernetes.io/basic-auth",
            {},
            ["data[username]: Required value", "data[password]: Required value"],
        ),
        ("kubernetes.io/basic-auth", {"password": ""}, []),
        ("kubernetes.io/ssh-auth", {}, ["data[ssh-privatekey]: Required value"]),
        ("kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]: Required value"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": encoded("{}")}, []),
        (
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        ("anything", {}, []),
    ],
)
def test_typed_secrets_hold_what_their_type_says(
    kind: str, data: Object, errors: list[str]
) -> None:
    assert errors_of(SECRETS, named(SECRETS, type=kind, data=data)) == errors


def test_broken_credentials_are_refused_without_being_shown() -> None:
    data = {".dockercfg": encoded("hunter2")}
    (error,) = errors_of(SECRETS, named(SECRETS, type="kubernetes.io/dockercfg", data=data))
    assert "<secret contents redacted>" in error
    assert "hunter2" not in error


def test_a_secrets_type_does_not_change() -> None:
    assert update_errors(SECRETS, named(SECRETS), {"type": "other"}) == [
        'type: Invalid value: "other": field is immutable'
    ]
