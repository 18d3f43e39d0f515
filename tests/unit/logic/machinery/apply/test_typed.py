"""Which fields an object has, and which differ, by schema and without one."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply.blank import blank_for
from skerry.logic.machinery.apply.fieldset import paths, union
from skerry.logic.machinery.apply.reconcile import reconciled
from skerry.logic.machinery.apply.typed import (
    NotTyped,
    compare,
    element_of,
    everything,
    fields_of,
    fields_of_new,
    is_granular_map,
)
from tests.kit.machinery.kinds import (
    definitions,
    deployment,
    deployment_schema,
    pod_schema,
    service_schema,
)


def pod(**spec: Any) -> Object:
    return {"spec": spec}


def test_declared_fields_are_not_members_but_what_they_hold_is() -> None:
    fields = fields_of(pod(nodeName="n", securityContext={"runAsUser": 1}), pod_schema())
    assert fields == {"f:spec": {"f:nodeName": {}, "f:securityContext": {"f:runAsUser": {}}}}


def test_members_of_free_maps_are_members() -> None:
    fields = fields_of({"metadata": {"labels": {"a": "b"}}}, pod_schema())
    assert fields == {"f:metadata": {"f:labels": {"f:a": {}}}}


def test_a_schemaless_map_owns_what_leads_to_its_values() -> None:
    fields = fields_of({"spec": {"a": {"b": 1}, "l": [1]}}, None)
    assert fields == {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}}}


def test_atomic_maps_and_lists_are_one_field() -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"tolerations": [{}]}}}
    assert fields_of({"spec": spec}, deployment_schema()) == {
        "f:spec": {"f:selector": {}, "f:template": {"f:spec": {"f:tolerations": {}}}}
    }


def test_list_items_are_known_by_their_keys_with_defaults_filled_in() -> None:
    fields = fields_of({"spec": {"ports": [{"port": 443}, {"port": 80}]}}, service_schema())
    keys = list(fields["f:spec"]["f:ports"])
    assert keys == ['k:{"port":80,"protocol":"TCP"}', 'k:{"port":443,"protocol":"TCP"}']


def test_a_schema_s_own_default_completes_a_key() -> None:
    items = {"properties": {"name": {"type": "string", "default": "main"}}}
    listing = Schema(
        {
            "type": "array",
            "items": items,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }
    )
    assert element_of({}, listing) == 'k:{"name":"main"}'


def test_empty_maps_and_nulls_are_members_and_empty_lists_are_not() -> None:
    value = pod(nodeSelector={}, containers=[], hostname=None, volumes=None)
    assert fields_of(value, pod_schema()) == {
        "f:spec": {"f:hostname": {}, "f:nodeSelector": {}, "f:volumes": {}}
    }


def test_sets_have_their_values_as_elements() -> None:
    fields = fields_of({"metadata": {"finalizers": ["b", "a"]}}, pod_schema())
    assert fields == {"f:metadata": {"f:finalizers": {'v:"a"': {}, 'v:"b"': {}}}}


def test_duplicates_are_one_leaf() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B"}]
    fields = fields_of(pod(containers=[{"name": "c", "env": env}]), pod_schema())
    container = fields["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert container["f:env"] == {
        'k:{"name":"A"}': {},
        'k:{"name":"B"}': {".": {}, "f:name": {}},
    }


def test_raw_extensions_are_nobody_s_to_look_into() -> None:
    raw = definitions().get("io.k8s.apimachinery.pkg.runtime.RawExtension")
    assert not is_granular_map(raw)
    assert everything({"a": 1}, raw) == {}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"containers": [{"image": "x"}]}, 'omits key field "name"'),
        ({"containers": [None]}, "may not have a null element"),
        ({"containers": ["x"]}, "may not have non-map elements"),
    ],
)
def test_items_without_keys_do_not_fit_the_schema(spec: Object, why: str) -> None:
    with pytest.raises(NotTyped, match=why):
        fields_of({"spec": spec}, pod_schema())


def test_a_key_beyond_what_json_can_say_does_not_fit_either() -> None:
    ports = [{"port": 10**30}]
    with pytest.raises(NotTyped, match="cannot be identified by its value"):
        fields_of({"spec": {"ports": ports}}, service_schema())


@pytest.mark.parametrize("item", [{}, [], None])
def test_only_scalars_are_elements_of_sets(item: Any) -> None:
    with pytest.raises(NotTyped):
        fields_of({"metadata": {"finalizers": [item]}}, pod_schema())


def test_a_change_is_reported_by_added_modified_and_removed_fields() -> None:
    old = deployment()
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 5
    del new["metadata"]["labels"]["tier"]
    containers = new["spec"]["template"]["spec"]["containers"]
    containers[0]["env"] = [{"name": "NEW", "value": "x"}, {"name": "MODE", "value": "test"}]
    found = compare(old, new, deployment_schema())
    env = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"web"}', "f:env")
    assert set(paths(found.modified)) == {
        ("f:spec", "f:replicas"),
        (*env, 'k:{"name":"MODE"}', "f:value"),
    }
    assert set(paths(found.added)) == {
        (*env, 'k:{"name":"NEW"}'),
        (*env, 'k:{"name":"NEW"}', "f:name"),
        (*env, 'k:{"name":"NEW"}', "f:value"),
    }
    assert set(paths(found.removed)) == {
        ("f:metadata", "f:labels", "f:tier"),
        (*env, 'k:{"name":"LEVEL"}'),
        (*env, 'k:{"name":"LEVEL"}', "f:name"),
        (*env, 'k:{"name":"LEVEL"}', "f:value"),
    }


def test_what_the_server_writes_itself_is_no_change() -> None:
    new = deployment()
    new["metadata"] |= {"resourceVersion": "43", "generation": 2, "managedFields": [{}]}
    assert compare(deployment(), new, deployment_schema()).same


def test_reordering_an_associative_list_changes_no_field() -> None:
    new = deployment()
    new["spec"]["template"]["spec"]["containers"].reverse()
    assert compare(deployment(), new, deployment_schema()).same


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        (1, True, set(), {("f:x",)}, set()),
        (1, 1.0, set(), set(), set()),
        (1, {"a": 1}, {("f:x", "f:a")}, {("f:x",)}, set()),
        ({"a": 1}, 1, set(), {("f:x",)}, {("f:x", "f:a")}),
        (None, {"a": 1}, {("f:x", "f:a")}, set(), set()),
        ({"a": 1}, {}, set(), set(), {("f:x", "f:a")}),
        (None, {}, set(), {("f:x",)}, set()),
        (None, 1, set(), {("f:x",)}, set()),
        ([1], [2], set(), {("f:x",)}, set()),
    ],
)
def test_forms_may_change_where_no_schema_says_otherwise(
    old: Any, new: Any, added: set[Any], modified: set[Any], removed: set[Any]
) -> None:
    found = compare({"x": old}, {"x": new}, None)
    assert tuple(set(paths(fields)) for fields in found) == (added, modified, removed)


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        (["a", "a"], ["a", "a"], set(), set(), set()),
        (["a", "a"], ["a", "a", "a"], set(), {'v:"a"'}, set()),
        (["a", "a"], ["a"], {'v:"a"'}, set(), {'v:"a"'}),
        (["a", "a"], [], set(), set(), {'v:"a"'}),
        (["a"], ["a", "a"], {'v:"a"'}, set(), {'v:"a"'}),
        ([], ["a", "a"], {'v:"a"'}, set(), set()),
        (None, ["a"], {'v:"a"'}, set(), set()),
    ],
)
def test_duplicates_are_compared_as_groups(
    old: Any, new: Any, added: set[str], modified: set[str], removed: set[str]
) -> None:
    found = compare(
        {"metadata": {"finalizers": old}}, {"metadata": {"finalizers": new}}, pod_schema()
    )
    last = tuple({path[-1] for path in paths(fields)} for fields in found)
    assert last == (added, modified, removed)


SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["x", "y"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@settings(max_examples=60, deadline=None)
@given(OBJECTS, OBJECTS)
def test_comparing_backwards_swaps_added_and_removed(old: Object, new: Object) -> None:
    there, back = compare(old, new, None), compare(new, old, None)
    assert (there.added, there.modified, there.removed) == (back.removed, back.modified, back.added)


@settings(max_examples=60, deadline=None)
@given(OBJECTS, OBJECTS)
def test_no_field_is_reported_of_twice(old: Object, new: Object) -> None:
    changes = [set(paths(fields)) for fields in compare(old, new, None)]
    assert len(set().union(*changes)) == sum(map(len, changes))


@settings(max_examples=100, deadline=None)
@given(OBJECTS)
def test_an_object_does_not_differ_from_itself(obj: Object) -> None:
    assert compare(obj, copy.deepcopy(obj), None).same


def test_a_field_that_became_atomic_is_owned_as_a_whole() -> None:
    fields = {
        "f:spec": {
            "f:selector": {"f:matchLabels": {".": {}, "f:app": {}}},
            "f:replicas": {},
            "f:template": {"f:spec": {"f:tolerations": {'k:{"key":"a"}': {".": {}}}}},
        }
    }
    assert reconciled(fields, deployment_schema()) == {
        "f:spec": {
            "f:selector": {},
            "f:replicas": {},
            "f:template": {"f:spec": {"f:tolerations": {}}},
        }
    }


def test_reconciling_what_fits_returns_the_very_set() -> None:
    fields = fields_of(deployment(), deployment_schema())
    assert reconciled(fields, deployment_schema()) is fields
    assert reconciled(fields, None) is fields


TEXTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "x"]), max_size=3)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("pq")},
        optional={"image": st.just("i"), "args": st.lists(st.just("x"), max_size=2)},
    ),
    max_size=3,
)
PODS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": st.just("n")}, optional={"labels": TEXTS})},
    optional={
        "spec": st.fixed_dictionaries(
            {}, optional={"containers": CONTAINERS, "nodeSelector": TEXTS, "hostname": st.just("h")}
        ),
        "status": st.fixed_dictionaries({}, optional={"phase": st.just("Pending")}),
    },
)


@given(PODS)
def test_what_a_create_owns_is_what_comparing_with_a_blank_finds(pod: dict[str, Any]) -> None:
    schema = pod_schema()
    blank = blank_for(schema)
    found = compare(blank, pod, schema)
    assert fields_of_new(pod, schema) == union(found.modified, found.added)
    # What is known from the first time is the same.
    assert fields_of_new(pod, schema) == union(found.modified, found.added)


class _Raw(dict[str, Any]):
    """The source of a schema, which can be asked whether anybody still has it."""


def test_nothing_is_remembered_by_the_schema_of_a_definition() -> None:
    raw = _Raw(type="object", properties={"spec": {"type": "object", "properties": {}}})
    known = weakref.ref(raw)
    schema = Schema(raw)
    new = {"metadata": {"name": "a"}, "spec": {"part": {"size": 1}}}
    assert fields_of_new(new, schema)["f:spec"]
    del raw, schema
    gc.collect()
    assert known() is None
