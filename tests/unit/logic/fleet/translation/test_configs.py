"""SyncerConfigs: always in the same order, and never with what means nothing."""

from __future__ import annotations

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import namespace_ref
from skerry.logic.fleet.translation.configs import (
    config_object,
    config_spec,
    desired_config,
    united,
)
from skerry.logic.fleet.translation.selected import UpsyncSet
from tests.kit.chain.translation_objects import ANY_MAP, GO, ROLE, ROLES, There, thing


def test_a_config_is_written_in_a_fixed_order_and_empty_parts_are_left_out() -> None:
    assert config_spec([], {}, {}, []) == {"namespaceScope": {}}
    deployments, services = GroupResource("apps", "deployments"), GroupResource("", "services")
    roles = GroupResource("rbac.authorization.k8s.io", "clusterroles")
    spec = config_spec(
        ["b", "a", "b"],
        {deployments: "v1", services: "v1"},
        {roles: ("v1", ["z", "y"])},
        [],
    )
    assert spec == {
        "namespaceScope": {
            "namespaces": ["a", "b"],
            "resources": [
                {"apiVersion": "v1", "group": "", "resource": "services"},
                {"apiVersion": "v1", "group": "apps", "resource": "deployments"},
            ],
        },
        "clusterScope": [
            {
                "apiVersion": "v1",
                "group": "rbac.authorization.k8s.io",
                "resource": "clusterroles",
                "objects": ["y", "z"],
            }
        ],
    }
    assert config_object(spec)["metadata"] == {"name": "the-one"}


def test_types_without_namespaces_mean_nothing_and_are_left_out() -> None:
    assert config_spec([], {GroupResource("", "pods"): "v1"}, {}, []) == {"namespaceScope": {}}


def test_upsync_sets_that_differ_in_order_only_are_one() -> None:
    one = UpsyncSet("g", ("b", "a"), ("n",), ("*",))
    same = UpsyncSet("g", ("a", "b"), ("n",), ("*",))
    other = UpsyncSet("g", ("a",), ("n",), ("*",))
    assert united([one, other, same]) == united([same, one, other]) == [other, same]


def wanted(there: There) -> Object:
    """Return the spec that the mailbox's SyncerConfig is to have."""
    found = desired_config(there.at())
    assert found.missing is None
    assert found.spec is not None
    return found.spec


def test_nobody_places_anything_there_so_there_is_no_config() -> None:
    assert desired_config(There().at()).spec is None


def test_a_config_names_the_namespaces_and_every_kind_that_may_travel_in_them() -> None:
    there = There()
    there.placed()
    scope = wanted(there)["namespaceScope"]
    assert scope["namespaces"] == ["n"]
    assert {each["resource"] for each in scope["resources"]} == {"configmaps", "secrets"}
    assert "clusterScope" not in wanted(there)


def test_cluster_scoped_objects_are_named_one_by_one() -> None:
    there = There()
    there.put(ROLES, thing("r", "one"))
    there.put(ROLES, thing("other", "one"))
    entry = {"apiGroup": ROLE.group, "resources": ["clusterroles"], "resourceNames": ["r"]}
    there.place("one", namespaceSelector={"matchLabels": {"no": "where"}},
                nonNamespacedObjects=[entry])  # fmt: skip
    [found] = wanted(there)["clusterScope"]
    assert (found["resource"], found["objects"]) == ("clusterroles", ["r"])


def test_what_comes_up_is_said_once_whoever_asks() -> None:
    there = There()
    rule = {"apiGroup": "g", "resources": ["a"], "namespaces": ["n"], "names": ["*"]}
    there.place("one", "p", namespaceSelector=GO, upsync=[rule])
    there.place("two", "q", namespaceSelector=GO, upsync=[rule])
    assert len(wanted(there)["upsync"]) == 1


def test_a_namespace_that_no_grant_covers_is_not_carried_but_what_stays_is() -> None:
    there = There()
    there.placed()
    there.book.mode = "Enforce"
    assert wanted(there)["namespaceScope"]["namespaces"] == ["n"], "its copy is there and stays"
    there.released.add(namespace_ref("n"))
    assert wanted(there) == {"namespaceScope": {}}
    there.book.granted = (ANY_MAP,)
    assert wanted(there)["namespaceScope"]["namespaces"] == ["n"]
