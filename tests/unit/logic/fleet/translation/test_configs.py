"""SyncerConfigs: always in the same order, and never with what means nothing."""

from __future__ import annotations

from skerry.api.kinds import GroupResource
from skerry.logic.fleet.translation.configs import config_object, config_spec, united
from skerry.logic.fleet.translation.selected import UpsyncSet


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
