"""Stored objects as the small records that requests depend on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import Mailbox
from skerry.api.keys import ObjectKey
from skerry.server.codec import encode
from skerry.server.workspaces.records import BindingReader, Claim, child_of, cluster_of

UID = "0a1b2c3d-0000-4000-8000-000000000001"


def value(**more: Any) -> bytes:
    metadata = {"name": "x", **more.pop("metadata", {})}
    return encode({"apiVersion": "v1", "kind": "X", "metadata": metadata, **more})


def test_a_cluster_without_annotations_or_status_is_one_that_nobody_enters() -> None:
    found = cluster_of("c", value())
    assert (found.path, found.phase, found.deleting, found.required_groups) == ("", "", False, None)
    assert (found.initializers, found.mailbox, found.revoked) == ((), None, "")
    assert cluster_of("root", value()).path == "root"


def test_a_cluster_is_read_from_its_annotations_and_status() -> None:
    notes = {
        "kcp.io/path": f"root:espw:imw-mb-{UID}",
        "authorization.kcp.io/required-groups": "a,b;c",
        "edge.kcp.io/edge-revoked": "2030-01-01T00:00:00Z",
        "edge.kcp.io/edge-approval": "auto",
    }
    metadata = {"annotations": notes, "deletionTimestamp": "2030-01-01T00:00:00Z"}
    status = {"phase": "Initializing", "initializers": ["root:home"]}
    found = cluster_of("box", value(metadata=metadata, status=status))
    assert found.mailbox == Mailbox("imw", UID)
    assert (found.phase, found.initializers) == ("Initializing", ("root:home",))
    assert found.deleting
    assert found.required_groups == "a,b;c"
    assert (found.revoked, found.edge_approval) == ("2030-01-01T00:00:00Z", "auto")


@pytest.mark.parametrize("spec", [None, {}, {"cluster": None}, {"cluster": ""}])
def test_a_workspace_without_a_cluster_leads_nowhere(spec: Any) -> None:
    assert child_of(value(spec=spec)) == ""
    assert child_of(value(spec={"cluster": "c"})) == "c"


def binding(
    metadata: dict[str, Any] | None = None, *conditions: str, **status: Any
) -> dict[str, Any]:
    bound = {"group": "g", "resource": "things",
             "schema": {"name": "s", "UID": "u", "identityHash": "i"}}  # fmt: skip
    return {
        "metadata": metadata or {},
        "spec": {"reference": {"export": {"name": "widgets"}}},
        "status": {
            "apiExportClusterName": "shop",
            "boundResources": [bound],
            "appliedPermissionClaims": [{"resource": "secrets", "all": True}],
            "conditions": [{"status": each} for each in conditions or ("True",)],
            **status,
        },
    }


def test_bindings_that_come_to_the_same_are_one() -> None:
    reader = BindingReader()
    first = reader.read(value(**binding({"name": "a"})))
    assert reader.read(value(**binding({"name": "b"}))) is first
    assert first.is_to("shop", "widgets")
    assert (first.bound[0].identity, first.bound[0].schema_cluster) == ("i", "shop")
    assert first.ready


@pytest.mark.parametrize(
    ("conditions", "ready"), [(("True", "True"), True), (("True", "False"), False)]
)
def test_a_binding_is_ready_when_all_its_conditions_are(
    conditions: tuple[str, ...], ready: bool
) -> None:
    assert BindingReader().read(value(**binding({}, *conditions))).ready is ready
    assert not BindingReader().read(value(**binding({}, conditions=[]))).ready


def test_a_copy_in_a_mailbox_agrees_to_nothing() -> None:
    reader = BindingReader()
    assert reader.read(value(**binding())).claims
    copy = {"labels": {"edge.kcp.io/projected": "yes"}}
    assert reader.read(value(**binding(copy))).claims == ()


def test_a_binding_that_is_being_deleted_is_distinguished_from_one_that_is_not() -> None:
    reader = BindingReader()
    reader.read(value(**binding()))
    terminating = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    assert reader.read(value(**binding(terminating))).deleting


def test_no_more_statuses_are_kept_than_a_few() -> None:
    reader = BindingReader()
    for number in range(200):
        reader.read(value(**binding(apiExportClusterName=f"c{number}")))
    assert len(reader._cache) <= 64


_texts = st.sampled_from(["", "a", "b"])
_selectors = st.lists(
    st.fixed_dictionaries({}, optional={"namespace": _texts, "name": _texts}), max_size=3
)


@given(_selectors, st.booleans(), _texts, _texts)
def test_a_claim_covers_what_it_names_and_all_only_where_it_says_so(
    selectors: list[dict[str, str]], everything: bool, namespace: str, name: str
) -> None:
    raw = {"resource": "secrets", "all": everything, "resourceSelector": selectors}
    claim = Claim.of(raw)
    wanted = everything or any(
        each.get("namespace", "") in ("", namespace)
        and (name == "" or each.get("name", "") in ("", name))
        for each in selectors
    )
    assert claim.covers(ObjectKey("", "secrets", "c", namespace, name)) is wanted
    assert not claim.covers(ObjectKey("", "configmaps", "c", namespace, name))
    assert not claim.covers(ObjectKey("g", "secrets", "c", namespace, name))


def test_a_claim_of_an_identity_covers_no_namesake() -> None:
    claim = Claim.of({"group": "g", "resource": "things", "identityHash": "i", "all": True})
    assert claim.covers(ObjectKey("g", "things:i", "c", "", "x"))
    assert not claim.covers(ObjectKey("g", "things", "c", "", "x"))
    assert not claim.covers(ObjectKey("g", "things:j", "c", "", "x"))
