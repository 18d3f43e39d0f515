"""What is kept of an object, and what is not."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import PROJECTED, PROJECTED_VALUE, edge_placement_ref
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.controllers.summarizer.projections import (
    Kind,
    brings_any,
    by_cluster,
    by_placement,
    labels_of,
    lean_binding,
    lean_definition,
    lean_slice,
    lean_summary,
    matters,
)
from skerry.logic.fleet.summary.report import delivery_of, digest_of, report_of

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", has_status=True)
SECRETS = Kind("", "v1", "secrets", "Secret", has_status=False)


def thing(**more: Any) -> Object:
    """Return an object with *more*; ``labels`` go to its metadata."""
    metadata = {
        "name": "web",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": "7",
        "annotations": {CLUSTER_ANNOTATION: "wmw", "note": "long"},
        "managedFields": [{"manager": "kubectl"}],
    }
    if "labels" in more:
        metadata["labels"] = more.pop("labels")
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **more}


IDENTITY = {
    "name": "web",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "7",
    "annotations": {CLUSTER_ANNOTATION: "wmw"},
}
COPY = {PROJECTED: PROJECTED_VALUE}


def test_of_a_source_its_labels_stay_and_a_digest_of_its_status() -> None:
    obj = thing(labels={"app": "web"}, spec={"replicas": 3}, status={"replicas": 3})

    assert DEPLOYMENTS.project(obj) == {
        "metadata": {**IDENTITY, "labels": {"app": "web"}},
        "digest": digest_of({"replicas": 3}),
    }


def test_of_a_secret_nothing_of_its_content_stays() -> None:
    obj = thing(labels={"app": "web"}, data={"password": "aGk="})

    kept = SECRETS.project(obj)

    assert kept == {"metadata": {**IDENTITY, "labels": {"app": "web"}}}


def test_of_a_copy_its_report_stays() -> None:
    obj = thing(labels=COPY, spec={"replicas": 3}, status={"replicas": 3})

    assert DEPLOYMENTS.project(obj) == {
        "metadata": IDENTITY,
        "report": report_of("apps", "Deployment", obj),
    }


def test_of_a_copy_without_status_stays_whether_it_was_delivered() -> None:
    obj = thing(labels=COPY, data={"password": "aGk="})

    assert SECRETS.project(obj) == {"metadata": IDENTITY, "report": delivery_of(obj)}


def test_a_system_object_is_only_known_as_one() -> None:
    obj = thing(type="kubernetes.io/service-account-token")

    assert SECRETS.project(obj) == {"metadata": IDENTITY, "system": True}


def test_who_an_object_is_does_not_depend_on_its_cluster() -> None:
    assert str(DEPLOYMENTS.item(thing())) == "deployments.apps shop/web"
    assert DEPLOYMENTS.item(thing()).cluster == ""


def test_clusters_that_hold_many_objects_are_named_once() -> None:
    one, other = DEPLOYMENTS.project(thing()), SECRETS.project(thing())

    assert one["metadata"]["annotations"] is other["metadata"]["annotations"]


def test_two_summaries_that_say_the_same_have_one_digest() -> None:
    one = lean_summary(thing(destinations=2, healthy=1))
    other = lean_summary({**thing(destinations=2, healthy=1), "metadata": {"name": "x"}})
    changed = lean_summary(thing(destinations=2, healthy=2))

    assert one["digest"] == other["digest"] != changed["digest"]


def test_of_a_slice_its_owner_its_labels_and_destinations_stay() -> None:
    owner = [{"kind": "EdgePlacement", "name": "p"}]
    obj = thing(labels={"a": "b"}, destinations=[{"cluster": "imw"}], other=1)
    obj["metadata"]["ownerReferences"] = owner

    assert lean_slice(obj) == {
        "metadata": {**IDENTITY, "labels": {"a": "b"}, "ownerReferences": owner},
        "destinations": [{"cluster": "imw"}],
    }


def test_a_slice_without_destinations_has_none() -> None:
    assert lean_slice(thing())["destinations"] == []


def test_of_a_definition_no_schema_stays() -> None:
    version = {"name": "v1", "served": True, "schema": {"x": 1}, "subresources": {"status": {}}}
    spec = {
        "group": "g",
        "names": {"plural": "ws"},
        "scope": "Cluster",
        "conversion": {},
        "versions": [version],
    }
    kept = lean_definition(thing(spec=spec, status={"conditions": [1], "storedVersions": ["v1"]}))

    assert kept["spec"] == {
        "group": "g",
        "names": {"plural": "ws"},
        "scope": "Cluster",
        "versions": [{"name": "v1", "served": True, "subresources": {"status": {}}}],
    }
    assert kept["status"] == {"conditions": [1]}


def test_bindings_that_bind_alike_share_what_they_bind() -> None:
    def binding() -> Object:
        bound = {"group": "g", "resource": "ws", "schema": {"name": "s", "identityHash": "i"}}
        return lean_binding(thing(status={"boundResources": [bound]}))

    assert binding()["bound"] == (("g", "ws", "i"),)
    assert binding()["bound"] is binding()["bound"]


def test_a_binding_matters_by_the_types_it_brings_that_go_to_edges() -> None:
    def binding(group: str, resource: str) -> Object:
        bound = {"group": group, "resource": resource, "schema": {"name": "s"}}
        return lean_binding(thing(status={"boundResources": [bound]}))

    assert not brings_any(binding("tenancy.kcp.io", "workspaces"))
    assert not brings_any(lean_binding(thing()))
    assert brings_any(binding("apps", "deployments"))


def test_what_every_namespace_has_matters_when_parts_of_it_were_asked_for() -> None:
    kept = Kind("", "v1", "configmaps", "ConfigMap", has_status=False).project(
        {"metadata": {**thing()["metadata"], "name": "kube-root-ca.crt"}}
    )
    assert not matters(kept)
    assert matters({**kept, "extract": ()})
    assert matters(SECRETS.project(thing()))


def test_objects_are_indexed_by_cluster_and_slices_by_placement() -> None:
    assert by_cluster(thing()) == ("wmw",)
    labels = {"edge.kcp.io/source-placement": "p"}
    assert by_placement(thing(labels=labels)) == (edge_placement_ref("wmw", "p"),)


def test_an_object_without_labels_has_none() -> None:
    assert labels_of(thing()) == {}
