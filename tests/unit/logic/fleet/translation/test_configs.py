"""SyncerConfigs: always in the same order, and never with what means nothing."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import namespace_ref
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.translation.configs import (
    config_object,
    config_scopes,
    config_spec,
    desired_config,
    united,
)
from skerry.logic.fleet.translation.merging import VERSIONS_DISAGREE
from skerry.logic.fleet.translation.selected import UpsyncSet
from skerry.logic.fleet.translation.workspaces import (
    DEFINITION_WATCH,
    GRANTS,
    NAMESPACE_WATCH,
    path_scope,
    types_scope,
)
from tests.kit.chain.translation_objects import (
    ANY_MAP,
    GO,
    MAPS,
    ROLE,
    ROLES,
    SECRETS,
    There,
    thing,
)


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


# -- as functions ----------------------------------------------------------------------------------

_few = st.lists(st.sampled_from("abc"), max_size=3).map(tuple)
_sets = st.builds(UpsyncSet, st.sampled_from(["g", "h"]), _few, _few, _few)


def meaning(each: UpsyncSet) -> tuple[object, ...]:
    return (each.group, *map(frozenset, (each.resources, each.namespaces, each.names)))


@given(st.lists(_sets, max_size=6), st.randoms())
def test_united_sets_mean_what_all_of_them_did_each_once_and_in_one_order(
    sets: list[UpsyncSet], shuffling: random.Random
) -> None:
    found = united(sets)
    assert {meaning(each) for each in found} == {meaning(each) for each in sets}
    assert len({meaning(each) for each in found}) == len(found)
    assert set(found) <= set(sets)
    assert united(found) == found
    shuffled = list(sets)
    shuffling.shuffle(shuffled)
    assert united(shuffled) == found


_kinds = st.sampled_from([GroupResource(group, name) for group in ("", "apps") for name in "xy"])


@given(
    st.lists(st.sampled_from("nm")),
    st.dictionaries(_kinds, st.sampled_from(["v1", "v2"])),
    st.dictionaries(_kinds, st.tuples(st.just("v1"), st.lists(st.sampled_from("ab"), min_size=1))),
)
def test_a_spec_does_not_depend_on_the_order_in_which_its_parts_were_found(
    namespaces: list[str],
    resources: dict[GroupResource, str],
    objects: dict[GroupResource, tuple[str, list[str]]],
) -> None:
    spec = config_spec(namespaces, resources, objects, [])
    backwards = {kind: (version, names[::-1]) for kind, (version, names) in objects.items()}
    assert spec == config_spec(
        namespaces[::-1],
        dict(reversed(resources.items())),
        dict(reversed(backwards.items())),
        [],
    )
    scope = spec["namespaceScope"]
    assert scope.get("namespaces", []) == sorted(set(namespaces))
    assert len(scope.get("resources", [])) == (len(resources) if namespaces else 0)
    assert len(spec.get("clusterScope", [])) == len(objects)


# -- what carries what -----------------------------------------------------------------------------

WIDGETS = GroupResource("example.io", "widgets")


def define(there: There, cluster: str, *versions: str) -> None:
    """Have a workspace define the kind Widget for itself."""
    spec = {
        "group": "example.io",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [{"name": name, "served": True} for name in versions],
    }
    status = {"conditions": [{"type": "Established", "status": "True"}]}
    obj = thing("widgets.example.io", cluster, spec=spec, status=status)
    there.put(DEFINITION_WATCH, {**obj, "kind": "CustomResourceDefinition"})
    there.workspaces.retype(cluster)
    there.put(NAMESPACE_WATCH, thing("n", cluster, labels={"go": "yes"}))


def version_of(there: There) -> str | None:
    resources = wanted(there)["namespaceScope"]["resources"]
    found = {each["resource"]: each["apiVersion"] for each in resources}
    return found.get("widgets")


def test_a_kind_is_carried_at_the_version_on_which_its_workspaces_agree() -> None:
    there = There()
    define(there, "one", "v1beta1", "v1")
    define(there, "two", "v1beta1")
    there.place("one", namespaceSelector=GO)
    assert version_of(there) == "v1"
    there.place("two", "q", namespaceSelector=GO)
    assert version_of(there) == "v1beta1"
    assert desired_config(there.at()).problems == ()


def test_a_kind_on_which_nobody_agrees_is_carried_at_the_newest_and_everybody_hears_of_it() -> None:
    there = There()
    define(there, "one", "v1")
    define(there, "two", "v2")
    one, two = (
        there.place("one", namespaceSelector=GO),
        there.place("two", "q", namespaceSelector=GO),
    )
    assert version_of(there) == "v2"
    problems = desired_config(there.at()).problems
    assert {each.placement for each in problems} == {one, two}
    assert {each.problem.reason for each in problems} == {VERSIONS_DISAGREE}
    assert all("v2 is used" in each.problem.message for each in problems)


def test_a_workspace_without_a_namespace_there_carries_none_of_its_kinds() -> None:
    there = There()
    define(there, "one", "v1")
    there.placed("two")
    there.place("one", namespaceSelector={"matchLabels": {"no": "where"}})
    assert version_of(there) is None


def test_a_malformed_placement_carries_nothing_and_keeps_nobody_elses_from_being_carried() -> None:
    there = There()
    wrong = {"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}
    there.place("two", "wrong", namespaceSelector=wrong)
    assert wanted(there) == {"namespaceScope": {}}
    there.placed("one")
    assert wanted(there)["namespaceScope"]["namespaces"] == ["n"]


def test_a_namespace_with_its_labels_is_one_of_the_objects_named() -> None:
    there = There()
    named = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["n"]}
    there.placed("one")
    there.place("one", namespaceSelector=GO, nonNamespacedObjects=[named])
    [found] = wanted(there)["clusterScope"]
    assert (found["resource"], found["objects"]) == ("namespaces", ["n"])
    there.place("one", namespaceSelector={"matchLabels": {"no": "where"}},
                nonNamespacedObjects=[named])  # fmt: skip
    assert "clusterScope" not in wanted(there), "named alone it does not go"


def test_what_may_come_up_is_what_grants_cover() -> None:
    there = There()
    rule = {"apiGroup": "g", "resources": ["a", "b"], "namespaces": ["n"], "names": ["*"]}
    there.place("one", namespaceSelector=GO, upsync=[rule])
    there.book.mode = "Enforce"
    assert "upsync" not in wanted(there)
    there.book.granted = [
        Rule(frozenset("g"), frozenset("a"), namespaced=True, cluster_scoped=False)
    ]
    [found] = wanted(there)["upsync"]
    assert found["resources"] == ["a"]


def test_a_config_means_nothing_before_all_that_decides_about_it_has_been_read() -> None:
    there = There()
    assert set(config_scopes(there.at())) == set()
    there.placed("one")
    scopes = set(config_scopes(there.at()))
    assert scopes == set(there.workspaces.all_scopes("one"))
    assert {types_scope("one"), NAMESPACE_WATCH, MAPS, SECRETS, ROLES} <= scopes
    there.book.mode = "Enforce"
    assert set(config_scopes(there.at())) == {*scopes, GRANTS}


def test_a_config_waits_for_the_path_that_one_of_its_objects_waits_for() -> None:
    there = There()
    entry = {"apiGroup": ROLE.group, "resources": ["clusterroles"], "resourceNames": ["r"]}
    for cluster, verb in (("one", "get"), ("two", "list")):
        there.put(ROLES, thing("r", cluster, rules=[{"verbs": [verb]}]))
        there.place(cluster, namespaceSelector=GO, nonNamespacedObjects=[entry])
    assert desired_config(there.at()).missing is None
    there.workspaces.leave("one")
    there.workspaces.follow("one")
    there.workspaces.retype("one")
    found = desired_config(there.at())
    assert (found.spec, found.missing) == (None, path_scope("one"))
