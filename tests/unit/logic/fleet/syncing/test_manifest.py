"""What is applied at an edge: nothing random, pods without rights, the chart's values alike."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


NAME = syncer_id("florin", "mb")


def container(terms: ManifestTerms) -> Object:
    pod = one(edge_manifest(terms), "Deployment")["spec"]["template"]["spec"]
    [found] = pod["containers"]
    made: Object = found
    return made


def test_two_mailboxes_of_one_name_have_two_syncers() -> None:
    assert syncer_id("florin", "mb") == syncer_id("florin", "mb")
    names = {syncer_id(target, mailbox) for target in ("a", "b") for mailbox in ("1", "2")}
    assert len(names) == 4
    assert all(name.startswith("kubestellar-syncer-") for name in names)


def test_arguments_say_who_the_syncer_is_and_where_its_things_lie() -> None:
    assert container(TERMS)["args"] == [
        "syncer",
        "--from-kubeconfig=/etc/skerry/kubeconfig",
        "--sync-target-name=florin",
        "--data-dir=/var/lib/skerry",
        f"--lock-namespace={NAME}",
        f"--identity-secret={NAME}-identity",
    ]
    shared = replace(TERMS, namespace="tools", makes_key=False, tunnel=True)
    assert container(shared)["args"][-2:] == ["--lock-namespace=tools", "--tunnel"]
    assert container(TERMS)["image"] == "skerry:1"


def test_every_path_among_the_arguments_is_mounted() -> None:
    pod = one(edge_manifest(TERMS), "Deployment")["spec"]["template"]["spec"]
    mounts = {each["name"]: each for each in container(TERMS)["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    assert mounts["kubeconfig"]["mountPath"] == "/etc/skerry"
    assert mounts["kubeconfig"]["readOnly"]
    assert mounts["data"]["mountPath"] == "/var/lib/skerry"
    [secret] = [v["secret"]["secretName"] for v in pod["volumes"] if v["name"] == "kubeconfig"]
    assert secret == NAME
    written = next(o for o in edge_manifest(TERMS) if o["kind"] == "Secret" and "stringData" in o)
    assert (written["metadata"]["name"], written["stringData"]) == (
        NAME, {"kubeconfig": "kind: Config\n"},
    )  # fmt: skip


def test_two_pods_never_write_one_journal() -> None:
    deployment = one(edge_manifest(replace(TERMS, replicas=2)), "Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (2, {"type": "Recreate"})
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels == {"app": NAME}
    assert deployment["template"]["spec"]["serviceAccountName"] == NAME


variants = st.builds(
    ManifestTerms,
    st.just("florin"),
    st.just("mb"),
    st.just("skerry:1"),
    st.just(edge_access(PLACED)),
    st.sampled_from([None, "kind: Config\n"]),
    makes_key=st.booleans(),
    namespace=st.sampled_from(["", "tools"]),
    admin=st.booleans(),
    storage_class=st.sampled_from(["", "fast"]),
    tunnel=st.booleans(),
)


@given(variants)
def test_every_binding_binds_a_role_that_is_made_to_the_account_that_is_made(
    terms: ManifestTerms,
) -> None:
    made = edge_manifest(terms)
    keys = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in made}
    assert len(keys) == len(made), "nothing is made twice"
    account = one(made, "ServiceAccount")["metadata"]
    for binding in (o for o in made if o["kind"].endswith("RoleBinding")):
        [subject] = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
        role, space = binding["roleRef"], binding["metadata"].get("namespace", "")
        there = space if role["kind"] == "Role" else ""
        assert (role["kind"], there, role["name"]) in keys
    spaces = {o["metadata"]["name"] for o in made if o["kind"] == "Namespace"}
    assert {space for _, space, _ in keys if space} <= spaces


@given(variants)
def test_the_chart_is_given_the_same_rights_as_the_manifest_has(terms: ManifestTerms) -> None:
    rights = helm_values(terms)["syncer"]["rights"]
    made = {
        o["metadata"]["name"]: o["rules"]
        for o in edge_manifest(terms)
        if o["kind"] == "ClusterRole"
    }
    assert made[NAME] == rights["everywhere"]
    assert made.get(f"{NAME}-placed", []) == rights["within"]
    assert bool(rights["namespaces"]) == bool(rights["within"])


def test_the_chart_runs_the_syncer_and_nothing_else() -> None:
    values = helm_values(replace(TERMS, storage_class="fast", tunnel=True))
    assert (values["hub"], values["controllers"]) == ({"enabled": False}, {"enabled": False})
    syncer = {key: value for key, value in values["syncer"].items() if key != "rights"}
    assert syncer == {
        "enabled": True,
        "name": NAME,
        "syncTarget": "florin",
        "kubeconfig": "kind: Config\n",
        "identitySecret": True,
        "storage": {"className": "fast"},
        "tunnel": True,
    }


def test_where_nothing_is_placed_in_namespaces_no_rights_are_bound_there() -> None:
    bare = replace(TERMS, access=edge_access(scope_of({})), tunnel=True)
    made = edge_manifest(bare)
    assert not any(o["metadata"]["name"].endswith("-placed") for o in made)
    rights = helm_values(bare)["syncer"]["rights"]
    assert (rights["within"], rights["namespaces"]) == ([], [])


def test_rights_of_ours_in_a_namespace_are_marked_as_such() -> None:
    made = edge_manifest(TERMS)
    [binding] = [o for o in made if o["metadata"].get("namespace") == "shop"]
    assert binding["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "skerry"}


def test_a_syncer_elects_itself_and_writes_no_other_lease() -> None:
    rules_ = rules(edge_manifest(replace(TERMS, makes_key=False)), "Role")
    assert rules_ == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
         "verbs": ["create", "get", "update"]},
    ]  # fmt: skip


def test_what_is_asked_of_one_manifest_does_not_change_the_next() -> None:
    before = edge_manifest(replace(TERMS, admin=True, tunnel=True))
    for obj in edge_manifest(replace(TERMS, admin=True, tunnel=True)):
        for rule in obj.get("rules", ()):
            rule["verbs"] = ["nothing"]
    assert edge_manifest(replace(TERMS, admin=True, tunnel=True)) == before


@pytest.mark.parametrize(
    ("extensions", "uid"),
    [
        ({"edge.kcp.io/edge": {"syncTargetUID": "u"}}, "u"),
        ({"edge.kcp.io/edge": {}}, ""),
        ({"edge.kcp.io/edge": None}, ""),
        ({"other": {"syncTargetUID": "u"}}, ""),
    ],
)
def test_an_edge_is_known_by_our_extension_alone(extensions: dict[str, Any], uid: str) -> None:
    assert sync_target_uid(extensions) == uid


def test_a_kubeconfig_leads_to_the_mailbox_by_default() -> None:
    config = hub_kubeconfig("https://hub/clusters/mb", b"", "florin", "secret")
    assert config["current-context"] == "mailbox"
    [context], [cluster], [user] = config["contexts"], config["clusters"], config["users"]
    assert context["context"]["cluster"] == cluster["name"]
    assert context["context"]["user"] == user["name"] == "florin"
    assert (cluster["cluster"], user["user"]) == (
        {"server": "https://hub/clusters/mb"}, {"token": "secret"},
    )  # fmt: skip
    [account, *_] = mailbox_objects("florin")
    assert context["context"]["namespace"] == account["metadata"]["namespace"]
