"""What is applied at an edge: nothing random, pods without rights, the chart's values alike."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from skerry.api.objects import Object
from skerry.logic.fleet.syncing.access import edge_access
from skerry.logic.fleet.syncing.manifest import (
    ManifestTerms,
    edge_manifest,
    helm_values,
    hub_kubeconfig,
    identity_secret_name,
    mailbox_objects,
    sync_target_uid,
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


@pytest.mark.parametrize(
    ("image", "repository", "tag"),
    [
        ("skerry:1", "skerry", "1"),
        ("host.example:5000/a/skerry:1", "host.example:5000/a/skerry", "1"),
        ("host.example:5000/a/skerry", "host.example:5000/a/skerry", "latest"),
        ("skerry", "skerry", "latest"),
        ("skerry@sha256:abc", "skerry@sha256", "abc"),
    ],
)
def test_the_chart_is_given_the_image_in_two_parts(image: str, repository: str, tag: str) -> None:
    values = helm_values(replace(TERMS, image=image))
    assert values["image"] == {"syncer": repository, "tag": tag}


def rules(objects: list[Object], kind: str, suffix: str = "") -> list[Object]:
    name = syncer_id("florin", "mb") + suffix
    (role,) = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    found: list[Object] = role["rules"]
    return found


def test_a_syncer_that_makes_a_key_may_keep_it_in_its_own_secret_and_no_other() -> None:
    name = identity_secret_name(syncer_id("florin", "mb"))
    with_key = rules(edge_manifest(TERMS), "Role")
    assert [each["resourceNames"] for each in with_key if "resourceNames" in each] == [[name]]
    without = edge_manifest(replace(TERMS, makes_key=False))
    assert all("resourceNames" not in each for each in rules(without, "Role"))
    assert name not in [o["metadata"]["name"] for o in without]
    secret = next(o for o in edge_manifest(TERMS) if o["metadata"]["name"] == name)
    assert "data" not in secret
    assert "stringData" not in secret


def test_pods_are_reached_through_a_tunnel_only_where_it_is_asked_for() -> None:
    def asks(terms: ManifestTerms) -> bool:
        placed = rules(edge_manifest(terms), "ClusterRole", "-placed")
        return any("pods/exec" in each["resources"] for each in placed)

    assert not asks(TERMS)
    assert asks(replace(TERMS, tunnel=True))
    pod = one(edge_manifest(replace(TERMS, tunnel=True)), "Deployment")["spec"]["template"]["spec"]
    assert "--tunnel" in pod["containers"][0]["args"]


def test_rights_of_an_administrator_are_everything_and_nothing_by_namespace() -> None:
    made = edge_manifest(replace(TERMS, admin=True))
    assert {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]} in rules(made, "ClusterRole")
    assert [o for o in made if o["metadata"].get("namespace") == "shop"] == []


def test_in_its_mailbox_a_syncer_reads_applies_and_removes_by_name() -> None:
    account, role, binding = mailbox_objects("florin")
    verbs = {verb for each in role["rules"] if "resources" in each for verb in each["verbs"]}
    assert verbs == {"get", "list", "watch", "create", "patch", "delete"}
    (subject,) = binding["subjects"]
    assert subject["name"] == account["metadata"]["name"] == role["metadata"]["name"]
    assert subject["namespace"] == account["metadata"]["namespace"]


def test_a_kubeconfig_says_which_sync_target_the_edge_is() -> None:
    config = hub_kubeconfig("https://hub", b"ca", "florin", "token", "uid-1")
    (user,) = config["users"]
    extensions = {each["name"]: each["extension"] for each in user["user"]["extensions"]}
    assert sync_target_uid(extensions) == "uid-1"
    (cluster,) = config["clusters"]
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == b"ca"
    plain = hub_kubeconfig("https://hub", b"", "florin", "token")
    assert "extensions" not in plain["users"][0]["user"]
    assert "certificate-authority-data" not in plain["clusters"][0]["cluster"]
    assert sync_target_uid({}) == sync_target_uid({"edge.kcp.io/edge": "odd"}) == ""
