"""Strategic merge patch on the schemas of real kinds, as kubectl writes such patches."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import BadRequest, Invalid
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.patch import apply_strategic_patch, two_way_merge_patch
from tests.kit.machinery.kinds import (
    definitions,
    deployment,
    deployment_schema,
    pod_schema,
    service_schema,
)


def patched(obj: Object, patch: Object, schema: Schema | None) -> Object:
    before = copy.deepcopy((obj, patch))
    result = apply_strategic_patch(obj, patch, schema)
    assert (obj, patch) == before, "an input was changed"
    return result


def pod_patched(spec: Object, patch: Object) -> Object:
    result: Object = patched({"spec": spec}, {"spec": patch}, pod_schema())["spec"]
    return result


def template(spec: Object) -> Object:
    return {"spec": {"template": {"spec": spec}}}


def names(elements: list[Object]) -> list[str]:
    return [element["name"] for element in elements]


def test_set_image_changes_one_container_and_leaves_the_other() -> None:
    patch = template(
        {
            "$setElementOrder/containers": [{"name": "web"}, {"name": "sidecar"}],
            "containers": [{"name": "web", "image": "nginx:1.28"}],
        }
    )
    result = patched(deployment(), patch, deployment_schema())
    expected = deployment()
    expected["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:1.28"
    assert result == expected


def test_an_environment_variable_is_added_and_another_removed() -> None:
    patch = template(
        {
            "containers": [
                {
                    "name": "web",
                    "$setElementOrder/env": [{"name": "NEW"}, {"name": "MODE"}],
                    "env": [{"name": "NEW", "value": "1"}, {"$patch": "delete", "name": "LEVEL"}],
                }
            ]
        }
    )
    result = patched(deployment(), patch, deployment_schema())
    env = result["spec"]["template"]["spec"]["containers"][0]["env"]
    assert env == [{"name": "NEW", "value": "1"}, {"name": "MODE", "value": "production"}]


def test_ports_merge_by_number_alone_whatever_the_protocol() -> None:
    service = {"spec": {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 80, "name": "http"}]}}
    patch = {"spec": {"ports": [{"port": 53, "protocol": "TCP"}]}}
    result = patched(service, patch, service_schema())
    assert result["spec"]["ports"] == [
        {"port": 53, "protocol": "TCP"},
        {"port": 80, "name": "http"},
    ]


def test_a_volume_changes_its_source_by_retain_keys() -> None:
    patch = template(
        {
            "volumes": [
                {"$retainKeys": ["name", "configMap"], "name": "data", "configMap": {"name": "cm"}}
            ]
        }
    )
    result = patched(deployment(), patch, deployment_schema())
    volumes = result["spec"]["template"]["spec"]["volumes"]
    assert volumes == [{"name": "data", "configMap": {"name": "cm"}}]


def test_the_strategy_changes_to_recreate_without_leftovers() -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    result = patched(deployment(), patch, deployment_schema())
    assert result["spec"]["strategy"] == {"type": "Recreate"}


def test_tolerations_are_atomic_and_replaced_whole() -> None:
    patch = template({"tolerations": [{"key": "other"}]})
    result = patched(deployment(), patch, deployment_schema())
    assert result["spec"]["template"]["spec"]["tolerations"] == [{"key": "other"}]


def test_finalizers_merge_as_a_set_and_are_deleted_by_their_own_list() -> None:
    obj = {"metadata": {"finalizers": ["a", "b"]}}
    added = patched(obj, {"metadata": {"finalizers": ["c", "a"]}}, pod_schema())
    assert sorted(added["metadata"]["finalizers"]) == ["a", "b", "c"]
    patch = {
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["b"],
            "$setElementOrder/finalizers": ["c", "a"],
            "finalizers": ["c"],
        }
    }
    assert patched(obj, patch, pod_schema())["metadata"]["finalizers"] == ["c", "a"]


def test_a_selector_with_strategy_replace_is_not_merged() -> None:
    schema = definitions().get("io.k8s.api.policy.v1.PodDisruptionBudget")
    obj = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    assert patched(obj, patch, schema) == {"spec": {"selector": {"matchLabels": {"b": "2"}}}}


def test_null_deletes_a_member_and_means_nothing_in_what_is_new() -> None:
    patch = {"metadata": {"labels": {"tier": None}, "annotations": None}, "x": {"y": None, "z": 1}}
    result = patched(deployment(), patch, deployment_schema())
    assert result["metadata"]["labels"] == {"app": "web"}
    assert "annotations" not in result["metadata"]
    assert result["x"] == {"z": 1}


def test_patch_replace_in_a_map_puts_the_patch_in_its_place() -> None:
    obj = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    patch = {"metadata": {"labels": {"$patch": "replace", "c": "3"}}}
    assert patched(obj, patch, pod_schema()) == {"metadata": {"labels": {"c": "3"}}}


def test_patch_delete_in_a_map_empties_it() -> None:
    obj = {"metadata": {"labels": {"a": "1"}}}
    patch = {"metadata": {"labels": {"$patch": "delete"}}}
    assert patched(obj, patch, pod_schema()) == {"metadata": {"labels": {}}}


def test_a_directive_on_what_does_not_exist_puts_in_nothing() -> None:
    patch = {
        "metadata": {"labels": {"$patch": "delete"}},
        "spec": {"volumes": [{"$patch": "replace"}]},
    }
    assert patched({"metadata": {}}, patch, pod_schema()) == {
        "metadata": {},
        "spec": {"volumes": []},
    }


def test_directives_inside_something_new_do_not_become_fields() -> None:
    patch = {
        "volumes": [{"$retainKeys": ["name"], "name": "v", "$setElementOrder/x": []}],
        "containers": [{"name": "b", "$setElementOrder/env": [], "args": None}],
    }
    assert pod_patched({"containers": [{"name": "a"}]}, patch) == {
        "volumes": [{"name": "v"}],
        "containers": [{"name": "b"}, {"name": "a"}],
    }


def test_patch_replace_in_a_list_drops_what_was_there() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    patch = {"containers": [{"$patch": "replace"}, {"name": "c"}]}
    assert pod_patched(spec, patch) == {"containers": [{"name": "c"}]}


def test_a_new_element_goes_before_those_only_the_server_has() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    patched_spec = pod_patched(spec, {"containers": [{"name": "c"}]})
    assert names(patched_spec["containers"]) == ["c", "a", "b"]


def test_what_only_the_server_has_keeps_its_place_among_what_is_ordered() -> None:
    spec = {"containers": [{"name": name} for name in ("server1", "a", "server2", "b", "server3")]}
    patch = {
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
        "containers": [{"name": "c"}],
    }
    result = pod_patched(spec, patch)
    assert names(result["containers"]) == ["server1", "a", "server2", "b", "c", "server3"]


def test_a_new_element_takes_the_place_a_deleted_one_leaves() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    patch = {
        "$setElementOrder/containers": [{"name": "d"}, {"name": "c"}],
        "containers": [{"name": "d"}, {"name": "c"}, {"$patch": "delete", "name": "b"}],
    }
    assert names(pod_patched(spec, patch)["containers"]) == ["a", "d", "c"]


def test_set_element_order_alone_reorders() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    patch = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    assert names(pod_patched(spec, patch)["containers"]) == ["b", "a"]


def test_an_order_for_a_list_that_is_nowhere_is_ignored() -> None:
    patch = {"$setElementOrder/containers": [{"name": "b"}]}
    assert pod_patched({}, patch) == {}


def test_an_order_beside_a_null_list_still_deletes_the_list() -> None:
    patch: Object = {"$setElementOrder/containers": [], "containers": None}
    assert pod_patched({"containers": [{"name": "a"}]}, patch) == {}


def test_without_a_schema_maps_merge_and_lists_are_replaced() -> None:
    obj = {"spec": {"items": [{"name": "a"}], "map": {"x": 1}}}
    patch = {"spec": {"items": [{"name": "b"}], "map": {"y": 2}}}
    expected = {"spec": {"items": [{"name": "b"}], "map": {"x": 1, "y": 2}}}
    assert patched(obj, patch, None) == expected


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            {"containers": [{"image": "x"}]},
            "map: map[image:x] does not contain declared merge key: name",
        ),
        ({"containers": [{"$patch": "delete"}]}, "does not contain declared merge key: name"),
        ({"containers": [{"$patch": "merge", "name": "a"}]}, "merging lists cannot yet be spec"),
        ({"containers": [{"$patch": "what", "name": "a"}]}, "unknown patch type: what in map"),
        ({"containers": ["x"]}, "list element types are not identical"),
        ({"$setElementOrder/containers": {}}, "expected a []interface {}, but received a map"),
        ({"$setElementOrder": []}, "invalid patch format of setElementOrder list"),
        ({"$deleteFromPrimitiveList": []}, "invalid patch format of primitive list"),
        ({"$retainKeys": "x"}, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["containers"], "nodeName": "n"}, "invalid patch format of retainKeys"),
        ({"$patch": "merge"}, "unknown patch type: merge in map"),
        (
            {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]},
            "doesn't match $setElementOrder list",
        ),
    ],
)  # fmt: skip
def test_a_malformed_patch_is_a_bad_request_in_kubernetes_words(
    patch: Object, message: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        pod_patched({"containers": [{"name": "a"}]}, patch)
    assert message in caught.value.message


def test_lists_of_lists_are_invalid() -> None:
    with pytest.raises(Invalid):
        pod_patched({"containers": [{"name": "a"}]}, {"containers": [["a"]]})


def test_a_patch_that_is_no_object_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match="cannot unmarshal array into"):
        apply_strategic_patch({}, [], None)


def test_a_merged_list_of_maps_needs_a_merge_key_in_the_schema() -> None:
    raw = {"properties": {"l": {"type": "array", "x-kubernetes-patch-strategy": "merge"}}}
    with pytest.raises(BadRequest, match="cannot merge lists without merge key"):
        apply_strategic_patch({"l": [{"a": 1}]}, {"l": [{"b": 1}]}, Schema(raw))


# Pods whose merged lists have distinct keys, which is what create-and-apply promises to restore.
NAMES = st.sampled_from(["a", "b", "c", "d"])
ENV = st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=3).map(
    lambda pairs: [{"name": name, "value": value} for name, value in pairs.items()]
)
CONTAINERS = st.lists(NAMES, unique=True, max_size=4).flatmap(
    lambda chosen: st.tuples(
        *(
            st.fixed_dictionaries(
                {"name": st.just(name)},
                optional={
                    "image": st.sampled_from(["x", "y"]),
                    "env": ENV,
                    "args": st.lists(NAMES, max_size=2),
                },
            )
            for name in chosen
        )
    ).map(list)
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(NAMES, NAMES, max_size=3),
                "finalizers": st.lists(NAMES, unique=True, max_size=3),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": CONTAINERS}, optional={"tolerations": st.lists(st.just({"key": "k"}))}
        ),
    }
)


@settings(max_examples=60, deadline=None)
@given(PODS, PODS)
def test_the_patch_between_two_objects_turns_one_into_the_other(old: Object, new: Object) -> None:
    patch = two_way_merge_patch(old, new, pod_schema())
    assert patched(old, patch, pod_schema()) == new


@settings(max_examples=100, deadline=None)
@given(PODS)
def test_the_patch_between_equal_objects_is_empty(pod: Object) -> None:
    assert two_way_merge_patch(pod, copy.deepcopy(pod), pod_schema()) == {}


@settings(max_examples=100, deadline=None)
@given(PODS)
def test_an_object_patched_with_itself_is_itself(pod: Object) -> None:
    assert patched(pod, pod, pod_schema()) == pod


@settings(max_examples=100, deadline=None)
@given(PODS, PODS)
def test_a_patch_applied_twice_changes_nothing_more(old: Object, new: Object) -> None:
    once = patched(old, new, pod_schema())
    assert patched(once, new, pod_schema()) == once


def test_retain_keys_is_written_where_the_schema_asks_for_it() -> None:
    new = deployment()
    new["spec"]["strategy"] = {"type": "Recreate"}
    patch = two_way_merge_patch(deployment(), new, deployment_schema())
    assert patch["spec"]["strategy"]["$retainKeys"] == ["type"]
    assert patched(deployment(), patch, deployment_schema()) == new
