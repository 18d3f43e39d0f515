"""What a syncer must be allowed at the edge."""

from __future__ import annotations

from skerry.api.kinds import GroupResource
from skerry.logic.fleet.syncing.access import (
    MAX_NAMESPACES,
    EdgeAccess,
    edge_access,
    missing_rule,
)
from skerry.logic.fleet.syncing.manifest import ManifestTerms, edge_manifest
from skerry.logic.machinery.edges.scope import scope_of


def test_rights_at_the_edge_follow_what_is_placed() -> None:
    scope = scope_of(
        {
            "namespaceScope": {
                "namespaces": ["a"],
                "resources": [
                    {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
                    {
                        "group": "rbac.authorization.k8s.io",
                        "resource": "roles",
                        "apiVersion": "v1",
                    },
                ],
            }
        }
    )
    access = edge_access(scope)
    assert access.namespaces == ("a",)
    assert any(rule["resources"] == ["deployments"] for rule in access.within)
    assert any("escalate" in rule["verbs"] for rule in access.within)
    assert not any("deployments" in rule["resources"] for rule in access.everywhere)
    terms = ManifestTerms("florin", "c1", "image", access, "kubeconfig")
    kinds = [doc["kind"] for doc in edge_manifest(terms)]
    assert kinds.count("RoleBinding") == 2
    assert edge_manifest(terms) == edge_manifest(terms)
    names = [f"n{i}" for i in range(MAX_NAMESPACES + 1)]
    wide = scope_of({"namespaceScope": {"namespaces": names, "resources": [
        {"group": "apps", "resource": "deployments", "apiVersion": "v1"}]}})  # fmt: skip
    assert edge_access(wide).within == ()


def test_a_placed_definition_may_be_asked_whether_it_still_has_instances() -> None:
    scope = scope_of({"clusterScope": [{
        "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
        "apiVersion": "v1", "objects": ["gadgets.shop.example"]}]})  # fmt: skip
    wanted = {"apiGroups": ["shop.example"], "resources": ["gadgets"], "verbs": ["list"]}
    assert wanted in edge_access(scope).everywhere


def test_the_bindings_a_syncer_needs_in_a_namespace_say_whose_they_are() -> None:
    scope = scope_of({"namespaceScope": {"namespaces": ["a"], "resources": [
        {"group": "", "resource": "configmaps", "apiVersion": "v1"}]}})  # fmt: skip
    terms = ManifestTerms("florin", "c1", "image", edge_access(scope), None)
    made = [d for d in edge_manifest(terms) if d["metadata"].get("namespace") == "a"]
    assert [d["kind"] for d in made] == ["RoleBinding"]
    assert made[0]["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "skerry"}


def test_pods_are_read_where_their_owners_are_placed_and_nowhere_else() -> None:
    def granted(group: str, resource: str) -> set[tuple[str, ...]]:
        placed = {"group": group, "resource": resource, "apiVersion": "v1"}
        scope = {"namespaceScope": {"namespaces": ["a"], "resources": [placed]}}
        access = edge_access(scope_of(scope))
        assert not any("pods" in rule["resources"] for rule in access.everywhere)
        return {(name, *rule["verbs"]) for rule in access.within for name in rule["resources"]}

    causes = {("pods", "list", "watch"), ("events", "list", "watch"), ("pods/log", "get"),
              ("replicasets", "list", "watch")}  # fmt: skip
    assert granted("apps", "deployments") > causes
    assert not granted("", "configmaps") & causes


RBAC = "rbac.authorization.k8s.io"
CRDS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")


def clustered(group: str, resource: str, objects: list[str]) -> EdgeAccess:
    entry = {"group": group, "resource": resource, "apiVersion": "v1", "objects": objects}
    return edge_access(scope_of({"clusterScope": [entry]}))


def verbs(access: EdgeAccess, resource: str) -> list[tuple[list[str], list[str] | None]]:
    """Return what is allowed of a cluster-scoped kind, and of which names."""
    return [
        (rule["verbs"], rule.get("resourceNames"))
        for rule in access.everywhere
        if resource in rule["resources"]
    ]


def test_cluster_scoped_objects_may_be_changed_by_name_only() -> None:
    follow, change = verbs(clustered(RBAC, "clusterroles", ["b", "a"]), "clusterroles")[:2]
    assert follow[1] is None
    assert "create" in follow[0]
    assert "delete" not in follow[0]
    assert change[1] == ["a", "b"]
    assert "delete" in change[0]
    everything = verbs(clustered(RBAC, "clusterroles", ["*"]), "clusterroles")
    assert everything[1][1] is None


def test_who_hands_out_rights_needs_the_right_to() -> None:
    roles = clustered(RBAC, "clusterroles", ["r"])
    assert (["escalate"], None) in verbs(roles, "clusterroles")
    bindings = clustered(RBAC, "clusterrolebindings", ["b"])
    assert (["bind"], None) in verbs(bindings, "clusterroles")


def test_a_definition_may_go_when_nothing_of_its_kind_is_there_so_that_is_listed() -> None:
    access = clustered(CRDS.group, CRDS.resource, ["widgets.test.example"])
    assert (["list"], None) in verbs(access, "widgets")


def test_namespaces_need_no_rules_of_their_own_beyond_what_every_syncer_has() -> None:
    assert clustered("", "namespaces", ["n"]).everywhere == edge_access(scope_of({})).everywhere


def test_what_comes_up_is_followed_where_the_edge_serves_it() -> None:
    rule = {"apiGroup": "g", "resources": ["*"], "namespaces": ["*"], "names": ["*"]}
    scope = scope_of({"upsync": [rule]})
    assert verbs(edge_access(scope), "widgets") == []
    [(allowed, _)] = verbs(edge_access(scope, [GroupResource("g", "widgets")]), "widgets")
    assert "create" not in allowed


def test_a_missing_rule_names_verb_kind_and_place() -> None:
    core = missing_rule("get", GroupResource("", "secrets"), "shop")
    assert core == "the edge must allow get of secrets in API group \"\" in namespace 'shop'"
    assert missing_rule("list", GroupResource("g", "w"), "").endswith("of w in API group g")
