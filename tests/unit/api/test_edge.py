"""What an object of the edge API is, by its labels, annotations and type."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import (
    API_VERSION,
    Mailbox,
    is_inert,
    is_projected,
    is_report,
    is_system_object,
    is_tool_key,
    is_upsynced,
    mailbox_named,
    placement_of_slice,
)
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object

BINDINGS = GroupResource("apis.kcp.io", "apibindings")
UID = "0b4e8f5a-0000-4000-8000-00000000000a"
OWNER = {"apiVersion": API_VERSION, "kind": "EdgePlacement", "name": "p", "uid": "u"}


def marked(projected: str = "", upsynced: str = "") -> Object:
    return {
        "metadata": {
            "labels": {"edge.kcp.io/projected": projected} if projected else {},
            "annotations": {"edge.kcp.io/upsynced": upsynced} if upsynced else None,
        }
    }


def test_a_report_says_that_it_came_up_and_is_no_copy() -> None:
    assert is_report(marked(upsynced="true"))
    assert not is_report(marked(upsynced="false"))
    assert not is_report(marked())
    copy_in_its_place = marked(projected="yes", upsynced="true")
    assert is_projected(copy_in_its_place)
    assert is_upsynced(copy_in_its_place)
    assert not is_report(copy_in_its_place)


def test_copies_and_reports_are_inert_and_nothing_else_is() -> None:
    assert is_inert(marked(projected="yes"))
    assert is_inert(marked(upsynced="true"))
    assert not is_inert(marked(projected="no", upsynced="false"))
    assert not is_inert(marked())
    assert not is_inert({})


@pytest.mark.parametrize(
    ("kind", "obj", "system"),
    [
        ("configmaps", {"metadata": {"name": "kube-root-ca.crt"}}, True),
        ("configmaps", {"metadata": {"name": "page"}}, False),
        ("serviceaccounts", {"metadata": {"name": "default"}}, True),
        ("serviceaccounts", {"metadata": {"name": "web"}}, False),
        (
            "secrets",
            {"metadata": {"name": "s"}, "type": "kubernetes.io/service-account-token"},
            True,
        ),
        ("secrets", {"metadata": {"name": "s"}, "type": "bootstrap.kubernetes.io/token"}, True),
        ("secrets", {"metadata": {"name": "s"}, "type": "helm.sh/release.v1"}, True),
        ("configmaps", {"metadata": {"name": "s"}, "type": "helm.sh/release.v1"}, False),
        ("secrets", {"metadata": {"name": "s"}, "type": "Opaque"}, False),
        ("services", {"metadata": {"name": "default"}}, False),
    ],
)
def test_what_every_cluster_makes_for_itself_is_known(kind: str, obj: Object, system: bool) -> None:
    assert is_system_object(GroupResource("", kind), obj) is system


def test_the_bindings_that_every_mailbox_has_are_system_objects() -> None:
    def binding(export: str) -> Object:
        return {"metadata": {"name": "b"}, "spec": {"reference": {"export": {"name": export}}}}

    assert is_system_object(BINDINGS, binding("edge.kcp.io"))
    assert not is_system_object(BINDINGS, binding("shop.example"))
    other = GroupResource("apps", "deployments")
    assert not is_system_object(other, binding("edge.kcp.io"))


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "p"}, "p"),
        ({"name": "p-2", "labels": {"edge.kcp.io/source-placement": "p"}}, "p"),
        (
            {
                "name": "p-2",
                "labels": {"edge.kcp.io/source-placement": "hash"},
                "ownerReferences": [OWNER],
            },
            "p",
        ),
        ({"name": "p", "ownerReferences": [{**OWNER, "kind": "Other", "name": "q"}]}, "p"),
        ({"name": "p", "ownerReferences": [{**OWNER, "apiVersion": "v1", "name": "q"}]}, "p"),
    ],
)
def test_a_slice_belongs_to_its_owner_else_to_whom_its_label_or_name_says(
    metadata: dict[str, Any], name: str
) -> None:
    assert placement_of_slice({"metadata": metadata}) == name


def test_a_mailbox_is_read_from_the_name_of_its_workspace() -> None:
    mailbox = Mailbox("2x88b5rebkw8e6tc", UID)
    assert mailbox_named(mailbox.workspace) == mailbox
    assert str(mailbox) == f"2x88b5rebkw8e6tc-mb-{UID}"


@pytest.mark.parametrize(
    "name", ["imw", f"-mb-{UID}", "a-mb-u1", f"a-mb-b-mb-{UID}", f"a-mb-{UID}x", ""]
)
def test_another_workspace_is_no_mailbox(name: str) -> None:
    assert mailbox_named(name) is None


@given(st.from_regex(r"[a-z0-9]{1,16}", fullmatch=True), st.uuids())
def test_the_name_of_every_mailbox_reads_back(cluster: str, uid: UUID) -> None:
    mailbox = Mailbox(cluster, str(uid))
    assert mailbox_named(mailbox.workspace) == mailbox


@pytest.mark.parametrize(
    ("key", "of_a_tool"),
    [
        ("argocd.argoproj.io/instance", True),
        ("argocd.argoproj.io/tracking-id", True),
        ("kustomize.toolkit.fluxcd.io/name", True),
        ("helm.toolkit.fluxcd.io/namespace", True),
        ("meta.helm.sh/release-name", True),
        ("applyset.kubernetes.io/part-of", True),
        ("kubectl.kubernetes.io/last-applied-configuration", True),
        ("kubectl.kubernetes.io/restartedAt", False),
        ("app.kubernetes.io/instance", False),
        ("app.kubernetes.io/managed-by", False),
        ("helm.sh/chart", False),
        ("argocd.argoproj.io.example/x", False),
        ("app", False),
    ],
)
def test_notes_of_tools_are_distinguished_from_what_people_select_by(
    key: str, of_a_tool: bool
) -> None:
    assert is_tool_key(key) is of_a_tool
