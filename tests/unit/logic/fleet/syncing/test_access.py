"""What a syncer must be allowed at the edge."""

from __future__ import annotations

from skerry.logic.fleet.syncing.access import MAX_NAMESPACES, edge_access
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
