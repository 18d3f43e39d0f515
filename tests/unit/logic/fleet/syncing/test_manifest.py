"""What is applied at an edge: nothing random, pods without rights, the chart's values alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skerry.api.objects import Object
from skerry.logic.fleet.syncing.access import edge_access
from skerry.logic.fleet.syncing.manifest import (
    ManifestTerms,
    edge_manifest,
    helm_values,
    syncer_id,
)
from skerry.logic.machinery.edges.scope import scope_of
from skerry.logic.machinery.pod_security.evaluation import violations
from skerry.logic.machinery.pod_security.policy import LevelVersion

PLACED = scope_of(
    {
        "namespaceScope": {
            "namespaces": ["shop"],
            "resources": [{"group": "", "resource": "configmaps", "apiVersion": "v1"}],
        }
    }
)
TERMS = ManifestTerms("florin", "mb", "skerry:1", edge_access(PLACED), "kind: Config\n", True)


def one(objects: list[Object], kind: str) -> Object:
    (found,) = [obj for obj in objects if obj["kind"] == kind]
    return found


def test_the_pod_keeps_to_the_policy_restricted() -> None:
    template = one(edge_manifest(TERMS), "Deployment")["spec"]["template"]
    assert (
        violations(LevelVersion("restricted", None), template["metadata"], template["spec"]) == []
    )


def test_the_syncers_own_namespace_enforces_that_and_a_shared_one_is_left_alone() -> None:
    own, shop = (o for o in edge_manifest(TERMS) if o["kind"] == "Namespace")
    assert own["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert "labels" not in shop["metadata"]
    shared, _ = (
        o for o in edge_manifest(replace(TERMS, namespace="tools")) if o["kind"] == "Namespace"
    )
    assert shared["metadata"] == {"name": "tools"}


def test_the_journal_lies_on_a_claim_of_the_class_asked_for() -> None:
    assert "storageClassName" not in one(edge_manifest(TERMS), "PersistentVolumeClaim")["spec"]
    fast = one(edge_manifest(replace(TERMS, storage_class="fast")), "PersistentVolumeClaim")
    assert fast["spec"]["storageClassName"] == "fast"
    pod = one(edge_manifest(TERMS), "Deployment")["spec"]["template"]["spec"]
    claims = [
        v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if v["name"] == "data"
    ]
    assert claims == [fast["metadata"]["name"]] == [syncer_id("florin", "mb")]


def test_making_it_again_makes_the_same() -> None:
    assert edge_manifest(TERMS) == edge_manifest(TERMS)


def test_rights_alone_have_no_credential_and_no_pod() -> None:
    kinds = {obj["kind"] for obj in edge_manifest(replace(TERMS, kubeconfig=None))}
    assert not kinds & {"Deployment", "PersistentVolumeClaim"}
    assert list(helm_values(replace(TERMS, kubeconfig=None))) == ["syncer"]


@pytest.mark.parametrize("admin", [False, True])
def test_values_for_helm_have_the_rights_of_the_manifest(admin: bool) -> None:
    terms = replace(TERMS, admin=admin)
    rights = helm_values(terms)["syncer"]["rights"]
    roles = [o for o in edge_manifest(terms) if o["kind"] == "ClusterRole"]
    assert [role["rules"] for role in roles] == [
        rules for rules in (rights["everywhere"], rights["within"]) if rules
    ]
    assert rights["namespaces"] == ([] if admin else ["shop"])
