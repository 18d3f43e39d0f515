"""What an edge may do, for any SyncerConfig."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.machinery.edges.rights import (
    MARKS,
    MAX_MARK_BYTES,
    REQUESTS,
    SYNCER_CONFIGS,
    Write,
    can_come_up,
    may,
    refusal,
)
from skerry.logic.machinery.edges.scope import Scope, scope_of

RBAC = "rbac.authorization.k8s.io"
KINDS = [
    GroupResource("", "configmaps"),
    GroupResource("", "secrets"),
    GroupResource("", "namespaces"),
    GroupResource("apps", "deployments"),
    GroupResource("", "serviceaccounts"),
    GroupResource(RBAC, "clusterroles"),
    GroupResource(RBAC, "rolebindings"),
    GroupResource("tenancy.kcp.io", "workspaces"),
    GroupResource("apis.kcp.io", "apibindings"),
    GroupResource("apis.kcp.io", "apiexports"),
    GroupResource("core.kcp.io", "logicalclusters"),
    GroupResource("edge.kcp.io", "edgeplacements"),
    GroupResource("edge.kcp.io", "locationgrants"),
    GroupResource("workload.kcp.io", "synctargets"),
    GroupResource("apiextensions.k8s.io", "customresourcedefinitions"),
    GroupResource("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    GroupResource("authentication.k8s.io", "tokenreviews"),
    GroupResource("authorization.k8s.io", "subjectaccessreviews"),
]
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
         "impersonate", "bind", "escalate", "approve", "sign", "use", "*"]  # fmt: skip
names = st.sampled_from(["*", "shop", "up", "default", "x"])
listed = st.lists(names, max_size=3)
kinds = st.sampled_from(KINDS)


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    def kind() -> dict[str, str]:
        found = draw(kinds)
        return {"group": found.group, "resource": found.resource, "apiVersion": "v1"}

    upsync = [
        {
            "apiGroup": (found := draw(kinds)).group,
            "resources": draw(st.sampled_from([["*"], [found.resource]])),
            "namespaces": draw(listed),
            "names": draw(listed),
        }
        for _ in range(draw(st.integers(0, 3)))
    ]
    return scope_of(
        {
            "namespaceScope": {
                "namespaces": draw(listed),
                "resources": [kind() for _ in range(draw(st.integers(0, 3)))],
            },
            "clusterScope": [
                {**kind(), "objects": draw(listed)} for _ in range(draw(st.integers(0, 2)))
            ],
            "upsync": upsync,
        }
    )


HUB_KINDS = [kind for kind in KINDS if not can_come_up(kind)]
places = st.sampled_from(["", "shop", "up", "default"])


@given(scopes(), st.sampled_from(HUB_KINDS), places, names, st.sampled_from(["", "status"]))
def test_no_rule_lets_an_edge_create_or_delete_what_gives_rights(
    scope: Scope, kind: GroupResource, namespace: str, name: str, subresource: str
) -> None:
    for verb in ("create", "delete", "deletecollection", "impersonate", "bind", "escalate"):
        assert not may(scope, verb, kind, subresource, namespace, name), verb


@given(scopes(), kinds, places, names, st.sampled_from(VERBS))
def test_only_status_is_a_subresource_of_an_edges(
    scope: Scope, kind: GroupResource, namespace: str, name: str, verb: str
) -> None:
    for subresource in ("scale", "token", "approval", "finalize", "exec", "proxy", "eviction"):
        assert not may(scope, verb, kind, subresource, namespace, name)


@given(scopes(), kinds, places, names)
def test_nothing_is_deleted_as_a_collection(
    scope: Scope, kind: GroupResource, namespace: str, name: str
) -> None:
    for verb in ("deletecollection", "impersonate", "approve", "sign", "use", "*"):
        assert not may(scope, verb, kind, "", namespace, name)


@given(kinds, places, names, st.sampled_from(VERBS))
def test_without_a_syncer_config_an_edge_reaches_no_objects(
    kind: GroupResource, namespace: str, name: str, verb: str
) -> None:
    # Deleting by name is left to admission, which finds no report.
    if verb != "delete":
        assert not may(scope_of({}), verb, kind, "", namespace, name)


@given(scopes(), names)
def test_an_edge_writes_the_status_of_its_syncer_config_and_asks_for_certificates(
    scope: Scope, name: str
) -> None:
    assert may(scope, "patch", SYNCER_CONFIGS, "status", "", name)
    for verb in ("create", "update", "patch", "delete"):
        assert not may(scope, verb, SYNCER_CONFIGS, "", "", name)
    assert may(scope, "create", REQUESTS, "", "", "")
    assert not may(scope, "list", REQUESTS, "", "", "")
    assert not may(scope, "watch", REQUESTS, "", "", "")
    for verb in ("update", "patch", "delete"):
        for subresource in ("", "approval", "status"):
            assert not may(scope, verb, REQUESTS, subresource, "", name)


# -- by object ---------------------------------------------------------------------------------

EVERYTHING = scope_of(
    {
        "namespaceScope": {
            "namespaces": ["shop"],
            "resources": [{"group": "", "resource": "configmaps", "apiVersion": "v1"}],
        },
        "upsync": [
            {"apiGroup": group, "resources": ["*"], "namespaces": ["*"], "names": ["*"]}
            for group in sorted({kind.group for kind in KINDS})
        ],
    }
)
texts = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text(max_size=3), max_size=3)


def copy(**members: Any) -> dict[str, Any]:
    metadata = {"name": "x", "uid": "1", "labels": {"edge.kcp.io/projected": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **members}


def report(**metadata: Any) -> dict[str, Any]:
    notes = {"edge.kcp.io/upsynced": "true", **metadata.pop("annotations", {})}
    return {"metadata": {"name": "x", "annotations": notes, **metadata}}


def changed(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


REF = ObjectRef("", "", "configmaps", "shop", "x")


@given(texts, texts, st.text(max_size=20), st.text(max_size=20))
def test_marks_and_status_of_a_copy_may_change_and_nothing_else(
    before: dict[str, str], after: dict[str, str], mark: str, status: str
) -> None:
    old = copy(data=before, status={"a": 1})
    marked = changed(old, annotations=dict.fromkeys(MARKS, mark), resourceVersion="9",
                     managedFields=[{"manager": "m"}])  # fmt: skip
    marked["status"] = {"a": status}
    assert not refusal(EVERYTHING, Write("UPDATE", REF, "", old, marked))
    new = {**marked, "data": after}
    assert bool(refusal(EVERYTHING, Write("UPDATE", REF, "", old, new))) == (before != after)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {}},
        {"labels": {"edge.kcp.io/projected": "no"}},
        {"labels": {"edge.kcp.io/projected": "yes", "more": "x"}},
        {"annotations": {"edge.kcp.io/upsynced": "true"}},
        {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        *({"annotations": {mark: "x" * (limit + 1)}} for mark, limit in MAX_MARK_BYTES.items()),
        {"annotations": {"edge.kcp.io/cause": "ü" * 129}},
        {"finalizers": ["a/b"]},
        {"ownerReferences": [{"uid": "2"}]},
        {"deletionTimestamp": "2030-01-01T00:00:00Z"},
    ],
)
def test_no_other_metadata_of_a_copy_changes(metadata: dict[str, Any]) -> None:
    old = copy()
    assert refusal(EVERYTHING, Write("UPDATE", REF, "", old, changed(old, **metadata)))


@given(kinds, st.sampled_from(["CREATE", "UPDATE", "DELETE"]))
def test_upsync_never_lifts_a_refusal(kind: GroupResource, verb: Any) -> None:
    ref = ObjectRef("", kind.group, kind.resource, "up", "x")
    old = None if verb == "CREATE" else report()
    new = None if verb == "DELETE" else report(labels={"a": "b"})
    assert bool(refusal(EVERYTHING, Write(verb, ref, "", old, new))) == (not can_come_up(kind))


@pytest.mark.parametrize(
    "kind", ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token",
             "edge.kcp.io/bootstrap-token"],
)  # fmt: skip
def test_secrets_that_are_credentials_do_not_come_up(kind: str) -> None:
    ref = ObjectRef("", "", "secrets", "up", "x")
    assert refusal(EVERYTHING, Write("CREATE", ref, "", None, {**report(), "type": kind}))
    assert not refusal(EVERYTHING, Write("CREATE", ref, "", None, {**report(), "type": "Opaque"}))


@pytest.mark.parametrize(
    "new",
    [
        {"metadata": {"name": "x"}},
        report(labels={"edge.kcp.io/projected": "yes"}),
        report(finalizers=["a/b"]),
        report(ownerReferences=[{"uid": "1"}]),
        report(annotations={"edge.kcp.io/upsynced": "yes"}),
    ],
)
def test_a_report_stays_a_report(new: dict[str, Any]) -> None:
    ref = ObjectRef("", "", "configmaps", "up", "x")
    for old in (None, report()):
        verb: Any = "CREATE" if old is None else "UPDATE"
        assert refusal(EVERYTHING, Write(verb, ref, "", old, new))


def test_nothing_but_reports_is_deleted() -> None:
    for old in (copy(), {"metadata": {"name": "x"}}):
        assert refusal(EVERYTHING, Write("DELETE", REF, "", old, None))
    namespace = namespace_ref("shop")
    assert refusal(EVERYTHING, Write("DELETE", namespace, "", report(), None))
    assert not refusal(EVERYTHING, Write("DELETE", namespace_ref("up"), "", report(), None))
