"""Scope, carrying, projection, evidence, marks, conditions and access."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.access import MOST_NAMESPACES, edge_access
from skerry.logic.fleet.syncing.carrying import carried
from skerry.logic.fleet.syncing.conditions import (
    MOST_OBJECTS,
    Standing,
    conditions,
    same_conditions,
)
from skerry.logic.fleet.syncing.delivery import content_mark, is_delivered, marked
from skerry.logic.fleet.syncing.downsync import APPLIED, Outcome
from skerry.logic.fleet.syncing.evidence import Budget, verdict
from skerry.logic.fleet.syncing.manifest import ManifestTerms, edge_manifest
from skerry.logic.fleet.syncing.projection import our_digest
from skerry.logic.fleet.syncing.records import Desired, Options, Placed
from skerry.logic.machinery.edges.scope import scope_of, united

words = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)


def test_a_scope_covers_what_the_config_names_and_no_more() -> None:
    scope = scope_of(
        {
            "namespaceScope": {
                "namespaces": ["a"],
                "resources": [{"group": "apps", "resource": "deployments", "apiVersion": "v1"}],
            },
            "clusterScope": [
                {"group": "", "resource": "nodes", "apiVersion": "v1", "objects": ["n"]},
                {"group": "g", "resource": "all", "apiVersion": "v1"},
                {"group": "g", "resource": "none", "apiVersion": "v1", "objects": []},
            ],
        }
    )
    assert scope.covers(ObjectRef("", "apps", "deployments", "a", "x"))
    assert not scope.covers(ObjectRef("", "apps", "deployments", "b", "x"))
    assert not scope.covers(ObjectRef("", "", "configmaps", "a", "x"))
    assert scope.covers(ObjectRef("", "", "namespaces", "", "a"))
    assert not scope.covers(ObjectRef("", "", "namespaces", "", "b"))
    assert scope.covers(ObjectRef("", "", "nodes", "", "n"))
    assert not scope.covers(ObjectRef("", "", "nodes", "", "m"))
    assert scope.covers(ObjectRef("", "g", "all", "", "anything"))
    assert not scope.covers(ObjectRef("", "g", "none", "", "anything"))


def test_upsync_rules_take_the_star_only_alone_and_nothing_for_an_empty_list() -> None:
    scope = scope_of(
        {
            "upsync": [
                {"apiGroup": "g", "resources": ["*"], "namespaces": ["n"], "names": ["*"]},
                {"apiGroup": "h", "resources": ["cogs"], "names": ["William"]},
            ]
        }
    )
    assert scope.brings_up(ObjectRef("", "g", "x", "n", "any"))
    assert not scope.brings_up(ObjectRef("", "g", "x", "m", "any"))
    assert scope.brings_up(ObjectRef("", "g", "clusterscoped", "", "any"))
    assert scope.brings_up(ObjectRef("", "h", "cogs", "", "William"))
    assert not scope.brings_up(ObjectRef("", "h", "cogs", "n", "William"))
    assert scope.unserved({GroupResource("g", "x")}) == {GroupResource("h", "cogs")}


def test_several_configs_count_together() -> None:
    one = scope_of({"clusterScope": [
        {"group": "g", "resource": "r", "apiVersion": "v1", "objects": ["a"]}]})  # fmt: skip
    other = scope_of({"clusterScope": [
        {"group": "g", "resource": "r", "apiVersion": "v1", "objects": ["b"]}]})  # fmt: skip
    both = united((one, other))
    assert both.covers(ObjectRef("", "g", "r", "", "a"))
    assert both.covers(ObjectRef("", "g", "r", "", "b"))


def whole_object() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "page",
            "namespace": "shop",
            "uid": "u",
            "resourceVersion": "5",
            "generation": 3,
            "managedFields": [{}],
            "ownerReferences": [{}],
            "finalizers": ["f"],
            "labels": {"edge.kcp.io/projected": "yes", "app": "x"},
            "annotations": {
                "kcp.io/cluster": "c",
                "edge.kcp.io/applied": "1",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "mine": "yes",
            },
        },
        "data": {"a": "1"},
        "status": {"x": 1},
    }


def test_content_travels_and_what_belongs_to_the_place_stays() -> None:
    assert carried(whole_object()) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "page",
            "namespace": "shop",
            "labels": {"app": "x"},
            "annotations": {"mine": "yes"},
        },
        "data": {"a": "1"},
    }


def test_a_job_leaves_its_generated_selector_behind() -> None:
    labels = {"controller-uid": "u", "job-name": "j", "app": "x"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "selector": {"matchLabels": {"controller-uid": "u"}},
            "template": {"metadata": {"labels": labels, "creationTimestamp": None}, "spec": {}},
        },
    }
    assert carried(job)["spec"] == {"template": {"metadata": {"labels": {"app": "x"}}, "spec": {}}}
    job["spec"]["manualSelector"] = True  # type: ignore[index]
    assert "selector" in carried(job)["spec"]


def test_a_service_keeps_its_wish_for_no_address_but_no_address() -> None:
    def service(address: str) -> Object:
        spec = {"clusterIP": address, "clusterIPs": [address], "ports": []}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}

    assert carried(service("10.0.0.1"))["spec"] == {"ports": []}
    assert carried(service("None"))["spec"]["clusterIP"] == "None"


def managed(obj: Object, fields: Object) -> Object:
    entry = {"manager": "skerry-syncer", "operation": "Apply", "fieldsV1": fields}
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": [entry]}}


FIELDS: Object = {
    "f:spec": {
        "f:replicas": {},
        "f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}}},
        "f:finalizers": {'v:"a"': {}},
    }
}


def pod_like(image: str = "i", extra: str = "e", finalizers: tuple[str, ...] = ("a",)) -> Object:
    containers = [{"name": "side"}, {"name": "web", "image": image, "extra": extra}]
    spec = {"replicas": 1, "containers": containers, "finalizers": list(finalizers), "o": extra}
    return managed({"metadata": {}, "spec": spec}, FIELDS)


def test_only_our_fields_enter_the_projection() -> None:
    base = our_digest(pod_like())
    assert our_digest(pod_like(extra="changed by another")) == base
    assert our_digest(pod_like(finalizers=("b", "a"))) == base
    assert our_digest(pod_like(image="drift")) != base
    assert our_digest(pod_like(finalizers=())) != base
    assert our_digest({"metadata": {}}) == ""


def test_the_budget_holds_what_is_too_much_and_lets_go_exactly_what_was_approved() -> None:
    budget = Budget(count=2, percent=10)
    pending = [f"configmaps/n/c{i}" for i in range(5)]
    assert verdict(budget, placed=100, recent=0, pending=pending, approved="").allowed
    held = verdict(budget, placed=20, recent=0, pending=pending, approved="")
    assert not held.allowed
    assert held.name in held.message
    assert verdict(budget, placed=20, recent=0, pending=pending, approved=held.name).allowed
    more = [*pending, "configmaps/n/another"]
    assert not verdict(budget, placed=20, recent=0, pending=more, approved=held.name).allowed


def test_a_mark_speaks_of_the_content_it_was_written_for() -> None:
    for generation in (None, 4):
        obj = whole_object()
        obj["metadata"]["generation"] = generation
        notes = marked(obj, APPLIED)
        assert notes is not None
        obj["metadata"]["annotations"] |= notes
        assert is_delivered(obj)
        assert marked(obj, APPLIED) in (None, {})
        if generation is None:
            obj["data"] = {"a": "2"}
        else:
            obj["metadata"]["generation"] = 5
        assert not is_delivered(obj)
        assert content_mark(obj) != notes["edge.kcp.io/applied"]


def test_a_failure_is_written_on_the_object_and_taken_away_again() -> None:
    obj = whole_object()
    told = marked(obj, Outcome("Failed", "Rejected", "no"))
    assert told == {"edge.kcp.io/sync-error": "Rejected: no"}
    obj["metadata"]["annotations"] |= told
    again = marked(obj, APPLIED)
    assert again is not None
    assert again["edge.kcp.io/sync-error"] is None


def test_conditions_keep_their_times_and_their_number() -> None:
    troubled = {
        ObjectRef("", "", "configmaps", "n", f"c{i:03}"): Outcome("Failed", "Rejected", "no")
        for i in range(150)
    }
    first = conditions(Standing(3, troubled), [], "t1")
    assert len(first) == 6 + MOST_OBJECTS
    later = conditions(Standing(3, troubled), first, "t2")
    assert same_conditions(first, later)
    assert {item["lastTransitionTime"] for item in later} == {"t1"}
    well = conditions(Standing(153), later, "t3")
    assert well[0]["status"] == "True"
    assert well[0]["lastTransitionTime"] == "t3"


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
    names = [f"n{i}" for i in range(MOST_NAMESPACES + 1)]
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


@given(st.booleans(), st.booleans(), words)
def test_a_record_reads_back_as_it_was_written(one: bool, other: bool, text: str) -> None:
    wish = Desired("v1", {"metadata": {"name": text}}, "u", 7, Options(one, other))
    record = Placed(wish, "store", 3, "e", "a", "o", one)
    assert Placed.decode(record.encode()) == record
