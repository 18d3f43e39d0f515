"""What goes into a mailbox of an object, and how a copy there is judged."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import is_projected, is_upsynced
from skerry.api.kinds import GroupResource
from skerry.logic.fleet.translation.copies import (
    bare_namespace,
    copied,
    digest,
    is_system_key,
    labelled,
    replacement,
)

CONFIG_MAPS = GroupResource("", "configmaps")
ACCOUNTS = GroupResource("", "serviceaccounts")
NAMESPACES = GroupResource("", "namespaces")

SOURCE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "page",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "selfLink": "/x",
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "managedFields": [{}],
        "ownerReferences": [{}],
        "finalizers": ["example.io/hold"],
        "labels": {"a": "b", "internal.apis.kcp.io/export": "x"},
        "annotations": {
            "note": "n",
            "kcp.io/cluster": "c",
            "edge.kcp.io/customizer": "c",
            "edge.kcp.io/applied": "1",
        },
    },
    "data": {"k": "v"},
    "status": {"x": 1},
}


@pytest.mark.parametrize(
    ("key", "system"),
    [
        ("kcp.io/cluster", True),
        ("internal.apis.kcp.io/export", True),
        ("scheduling.kcp.io/labels", True),
        ("edge.kcp.io/customizer", False),
        ("syncer.edge.kcp.io/x", False),
        ("notkcp.io/x", False),
        ("app", False),
    ],
)
def test_keys_of_the_workspace_layer_are_distinguished_from_others(key: str, system: bool) -> None:
    assert is_system_key(key) is system


def test_a_copy_has_the_content_and_nothing_the_server_keeps() -> None:
    assert labelled(copied(CONFIG_MAPS, SOURCE)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "page",
            "namespace": "shop",
            "labels": {"a": "b", "edge.kcp.io/projected": "yes"},
            "annotations": {"note": "n", "edge.kcp.io/customizer": "c"},
        },
        "data": {"k": "v"},
    }


def test_notes_of_tools_are_not_copied_and_go_from_a_copy_that_has_them() -> None:
    notes = {"argocd.argoproj.io/tracking-id": "shop:page", "note": "n"}
    labels = {"kustomize.toolkit.fluxcd.io/name": "shop", "app": "web"}
    source = {**SOURCE, "metadata": {"name": "page", "labels": labels, "annotations": notes}}
    wanted = labelled(copied(CONFIG_MAPS, source))
    assert wanted["metadata"]["annotations"] == {"note": "n"}
    assert wanted["metadata"]["labels"] == {"app": "web", "edge.kcp.io/projected": "yes"}
    before = labelled(source)
    assert digest(CONFIG_MAPS, before) != digest(CONFIG_MAPS, wanted)
    after = replacement(CONFIG_MAPS, before, wanted)
    assert digest(CONFIG_MAPS, after) == digest(CONFIG_MAPS, wanted)


def test_token_references_of_a_service_account_stay_behind_and_are_not_compared() -> None:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "runner"},
        "secrets": [{"name": "runner-token-abcde"}],
        "imagePullSecrets": [{"name": "pull"}],
    }
    made = copied(ACCOUNTS, account)
    assert "secrets" not in made
    assert made["imagePullSecrets"] == [{"name": "pull"}]
    assert digest(ACCOUNTS, made) == digest(ACCOUNTS, account)


def test_a_bare_namespace_is_judged_without_what_the_server_adds() -> None:
    bare = bare_namespace("shop")
    served = copy.deepcopy(bare)
    served["metadata"]["labels"]["kubernetes.io/metadata.name"] = "shop"
    served["metadata"]["annotations"] = {"kcp.io/cluster": "c"}
    served |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    assert digest(NAMESPACES, served) == digest(NAMESPACES, bare)


def test_marks_are_read_by_their_exact_values() -> None:
    assert is_projected(bare_namespace("n"))
    assert not is_projected({"metadata": {"labels": {"edge.kcp.io/projected": "no"}}})
    assert is_upsynced({"metadata": {"annotations": {"edge.kcp.io/upsynced": "true"}}})
    assert not is_upsynced({"metadata": {}})


def test_a_replacement_keeps_what_belongs_to_the_mailbox_and_drops_what_the_source_dropped() -> (
    None
):
    live = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "page",
            "namespace": "shop",
            "uid": "copy",
            "resourceVersion": "9",
            "finalizers": ["mailbox/hold"],
            "labels": {"old": "x", "internal.apis.kcp.io/export": "e"},
            "annotations": {"old": "x", "kcp.io/cluster": "m", "edge.kcp.io/applied": "2"},
        },
        "data": {"k": "old"},
        "binaryData": {"z": ""},
        "status": {"seen": True},
    }
    wanted = labelled(copied(CONFIG_MAPS, SOURCE))
    result = replacement(CONFIG_MAPS, live, wanted)
    assert result["metadata"] == {
        "name": "page",
        "namespace": "shop",
        "uid": "copy",
        "resourceVersion": "9",
        "finalizers": ["mailbox/hold"],
        "labels": {"a": "b", "edge.kcp.io/projected": "yes", "internal.apis.kcp.io/export": "e"},
        "annotations": {
            "note": "n",
            "edge.kcp.io/customizer": "c",
            "kcp.io/cluster": "m",
            "edge.kcp.io/applied": "2",
        },
    }
    assert result["data"] == {"k": "v"}
    assert "binaryData" not in result
    assert result["status"] == {"seen": True}


KEYS = st.sampled_from(
    [
        "a",
        "b",
        "kcp.io/x",
        "x.kcp.io/y",
        "edge.kcp.io/z",
        "edge.kcp.io/applied",
        "edge.kcp.io/cause",
        "meta.helm.sh/release-name",
    ]
)
OBJECTS = st.builds(
    lambda labels, annotations, data, status: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "n", "labels": labels, "annotations": annotations},
        **({"data": data} if data else {}),
        "status": status,
    },
    st.dictionaries(KEYS, st.sampled_from("12")),
    st.dictionaries(KEYS, st.sampled_from("12")),
    st.dictionaries(st.sampled_from("kl"), st.sampled_from("12")),
    st.dictionaries(st.just("s"), st.integers(0, 3)),
)


@given(OBJECTS, OBJECTS)
def test_replacing_reaches_the_goal_and_a_second_time_changes_nothing(
    live: dict[str, Any], source: dict[str, Any]
) -> None:
    wanted = labelled(copied(CONFIG_MAPS, source))
    once = replacement(CONFIG_MAPS, live, wanted)
    assert digest(CONFIG_MAPS, once) == digest(CONFIG_MAPS, wanted)
    assert once["status"] == live["status"]
    assert replacement(CONFIG_MAPS, once, wanted) == once


@given(OBJECTS, OBJECTS)
def test_copies_have_one_digest_exactly_when_they_are_equal(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = copied(CONFIG_MAPS, one), copied(CONFIG_MAPS, other)
    assert (digest(CONFIG_MAPS, first) == digest(CONFIG_MAPS, second)) == (first == second)
