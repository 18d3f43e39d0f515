"""Server-side apply: ownership is asked for, shared, fought over and given up."""

from __future__ import annotations

import copy
from typing import Any, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import BadRequest, Conflict
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply import ApplyResult, WriteTerms, apply, track_update
from skerry.logic.machinery.apply.last_applied import ANNOTATION
from tests.kit.machinery.kinds import (
    config_map,
    config_map_schema,
    deployment,
    deployment_schema,
    service_schema,
)

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


def terms(manager: str, now: str = EARLY, **more: Any) -> WriteTerms:
    given_terms = {"manager": manager, "api_version": "v1", "now": now}
    return cast("WriteTerms", {**given_terms, "schema": config_map_schema(), **more})


def deployment_terms(manager: str, now: str = EARLY, **more: Any) -> WriteTerms:
    return terms(manager, now, api_version="apps/v1", schema=deployment_schema(), **more)


def applied(
    live: Object | None, config: Object, manager: str, *, force: bool = False, **more: Any
) -> ApplyResult:
    before = copy.deepcopy((live, config))
    result = apply(live, config, force=force, **terms(manager, **more))
    assert (live, config) == before, "an input was changed"
    return result


def owners(obj: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


def data_owners(obj: Object) -> dict[str, set[str]]:
    """Return the keys of ``data`` that each manager owns."""
    return {
        manager: {key[2:] for key in fields.get("f:data", {}) if key != "."}
        for manager, fields in owners(obj).items()
    }


def updated(live: Object, new: Object, manager: str, **more: Any) -> Object:
    entries = track_update(live, new, **terms(manager, **more))
    return {**new, "metadata": {**new["metadata"], "managedFields": entries}}


def test_applying_to_nothing_creates_and_owns_what_was_named() -> None:
    result = applied(None, config_map(a="1"), "x")
    assert result.changed
    assert result.object["data"] == {"a": "1"}
    assert result.object["metadata"]["managedFields"] == [
        {
            "manager": "x",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": EARLY,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]


def test_applying_the_same_again_changes_nothing_and_keeps_the_time() -> None:
    live = applied(None, config_map(a="1"), "x").object
    again = applied(live, config_map(a="1"), "x", now=LATE)
    assert not again.changed
    assert again.object is live


def test_applying_a_change_moves_the_time() -> None:
    live = applied(None, config_map(a="1"), "x").object
    result = applied(live, config_map(a="2"), "x", now=LATE)
    assert result.changed
    assert result.object["data"] == {"a": "2"}
    assert result.object["metadata"]["managedFields"][0]["time"] == LATE


def test_agreeing_on_a_value_makes_both_owners() -> None:
    live = applied(None, config_map(a="1"), "x").object
    result = applied(live, config_map(a="1"), "y", now=LATE)
    assert result.changed
    assert result.object["data"] == {"a": "1"}
    assert data_owners(result.object) == {"x": {"a"}, "y": {"a"}}


def test_disagreeing_is_one_conflict_that_names_the_other() -> None:
    live = applied(None, config_map(a="1"), "x").object
    with pytest.raises(Conflict) as caught:
        applied(live, config_map(a="2"), "y")
    assert caught.value.code == 409
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "x": .data.a'
    assert caught.value.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "x"',
                "field": ".data.a",
            }
        ]
    }


def test_a_conflict_with_an_updater_names_its_version() -> None:
    live = deployment()
    live["metadata"]["managedFields"] = track_update(
        None, live, **deployment_terms("kubectl-client-side-apply")
    )
    config: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 9},
    }
    with pytest.raises(Conflict) as caught:
        apply(live, config, **deployment_terms("y"))
    assert caught.value.message == (
        "Apply failed with 1 conflict: conflict with "
        '"kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )


def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(None, config_map(a="1", b="1"), "x").object
    live = applied(live, config_map(c="1"), "w").object
    live["metadata"]["managedFields"][0]["subresource"] = "scale"
    with pytest.raises(Conflict) as caught:
        applied(live, config_map(a="2", b="2", c="2"), "y")
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "w" with subresource "scale":\n- .data.c\n'
        'conflicts with "x":\n- .data.a\n- .data.b'
    )
    assert len(caught.value.details["causes"]) == 3


def test_true_in_place_of_one_is_a_conflict_too() -> None:
    more = custom_terms({"x-kubernetes-preserve-unknown-fields": True})
    live = applied(None, custom({"a": {"b": 1}}), "x", **more).object
    with pytest.raises(Conflict, match=r"\.spec\.a\.b"):
        applied(live, custom({"a": {"b": True}}), "y", **more)
    new = {**live, "spec": {"a": {"b": True}}}
    assert updated(live, new, "u", **more)["metadata"]["managedFields"][1]["manager"] == "u"


def test_who_owns_a_map_for_its_own_sake_keeps_it_when_it_is_emptied() -> None:
    live = applied(None, {**config_map(), "data": {}}, "x").object
    live = applied(live, config_map(a="1"), "y").object
    bare = {key: value for key, value in config_map().items() if key != "data"}
    result = applied(live, bare, "y")
    assert "data" not in result.object
    assert owners(result.object) == {"x": {"f:data": {}}}


def test_an_item_another_owns_keeps_its_keys_but_those_that_go_without_saying() -> None:
    service: dict[str, Any] = {"schema": service_schema()}
    base: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    explicit = {**base, "spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}
    implicit = {**base, "spec": {"ports": [{"port": 80}]}}
    live = applied(None, explicit, "x", **service).object
    assert applied(live, implicit, "x", **service).object["spec"]["ports"] == [{"port": 80}]


def test_force_takes_the_field_away() -> None:
    live = applied(None, config_map(a="1", b="1"), "x").object
    result = applied(live, config_map(a="2"), "y", force=True)
    assert result.object["data"] == {"a": "2", "b": "1"}
    assert data_owners(result.object) == {"x": {"b"}, "y": {"a"}}


def test_an_unnamed_field_goes_when_nobody_else_owns_it() -> None:
    live = applied(None, config_map(a="1", b="1"), "x").object
    result = applied(live, config_map(a="1"), "x", now=LATE)
    assert result.object["data"] == {"a": "1"}
    assert data_owners(result.object) == {"x": {"a"}}


def test_an_unnamed_field_stays_while_another_owns_it() -> None:
    live = applied(None, config_map(a="1", b="1"), "x").object
    live = applied(live, config_map(b="1"), "y").object
    result = applied(live, config_map(a="1"), "x")
    assert result.object["data"] == {"a": "1", "b": "1"}
    assert data_owners(result.object) == {"x": {"a"}, "y": {"b"}}


def test_an_unnamed_field_stays_while_an_updater_owns_it() -> None:
    live = applied(None, config_map(a="1", b="1"), "x").object
    live = updated(live, {**live, "data": {"a": "1", "b": "2"}}, "u")
    result = applied(live, config_map(a="1"), "x")
    assert result.object["data"] == {"a": "1", "b": "2"}


def test_a_field_nobody_owns_stays_when_its_neighbours_go() -> None:
    live = applied(None, config_map(a="1"), "x").object
    live["data"]["stray"] = "1"
    result = applied(live, {**config_map(), "data": {}}, "x")
    assert result.object["data"] == {"stray": "1"}


def test_giving_up_everything_removes_the_map_too_and_keeps_the_name() -> None:
    live = applied(None, config_map(a="1"), "x").object
    live["metadata"]["uid"] = "u"
    config = {key: value for key, value in config_map().items() if key != "data"}
    result = applied(live, config, "x")
    assert "data" not in result.object
    assert result.object["metadata"] == {"name": "settings", "namespace": "default", "uid": "u"}


def test_updaters_take_from_appliers_without_asking() -> None:
    live = applied(None, config_map(a="1"), "x").object
    live = updated(live, {**live, "data": {"a": "2"}}, "u")
    assert data_owners(live) == {"u": {"a"}}
    with pytest.raises(Conflict, match=r'conflict with "u" using v1: \.data\.a'):
        applied(live, config_map(a="1"), "x")


def test_a_list_item_is_shared_field_by_field() -> None:
    service: dict[str, Any] = {"schema": service_schema()}
    base: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    first = {**base, "spec": {"ports": [{"port": 80, "name": "http"}]}}
    second = {**base, "spec": {"ports": [{"port": 80, "protocol": "TCP", "appProtocol": "h2"}]}}
    live = applied(None, first, "x", **service).object
    live = applied(live, second, "y", **service).object
    assert live["spec"]["ports"] == [
        {"port": 80, "name": "http", "protocol": "TCP", "appProtocol": "h2"}
    ]
    gone = {**base, "spec": {"ports": []}}
    live = applied(live, gone, "x", **service).object
    assert live["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "appProtocol": "h2"}]
    live = applied(live, gone, "y", **service).object
    assert live["spec"]["ports"] == []


def test_the_first_apply_finds_what_was_there_owned_by_its_past() -> None:
    live = config_map(a="1", b="1")
    result = applied(live, config_map(a="1"), "x")
    assert data_owners(result.object) == {"x": {"a"}, "before-first-apply": {"a", "b"}}
    with pytest.raises(Conflict, match=r'"before-first-apply" using v1: \.data\.b'):
        applied(live, config_map(b="2"), "x")


def test_managed_fields_may_not_be_applied() -> None:
    config = config_map(a="1")
    config["metadata"]["managedFields"] = []
    with pytest.raises(BadRequest) as caught:
        applied(None, config, "x")
    assert caught.value.message == "metadata.managedFields must be nil"
    config["metadata"]["managedFields"] = None
    assert applied(None, config, "x").changed


def test_the_version_and_kind_applied_must_be_those_served() -> None:
    config = {**config_map(), "apiVersion": "v2"}
    with pytest.raises(BadRequest) as caught:
        applied(None, config, "x")
    assert caught.value.message == (
        "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1"
    )
    with pytest.raises(BadRequest, match="invalid object type: v2, Kind=ConfigMap"):
        applied(None, config, "x", kind="ConfigMap")


def test_what_the_schema_does_not_know_is_refused() -> None:
    with pytest.raises(BadRequest) as caught:
        applied(None, {**config_map(), "dta": {}}, "x")
    assert caught.value.message == (
        "failed to create typed patch object (default/settings; v1, Kind=ConfigMap): "
        ".dta: field not declared in schema"
    )


def test_a_live_object_that_does_not_fit_its_schema_is_reported() -> None:
    live = deployment()
    live["spec"]["template"]["spec"]["containers"] = [{"image": "nameless"}]
    config = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1},
    }
    with pytest.raises(BadRequest, match="failed to create typed live object"):
        apply(live, config, **deployment_terms("x"))


def test_an_applied_null_unsets_and_stays_unset() -> None:
    live = applied(None, config_map(a="1"), "x").object
    config = {**config_map(), "data": {"a": None}}
    result = applied(live, config, "x")
    assert result.object.get("data", {}) == {}
    assert not applied(result.object, config, "x", now=LATE).changed


def custom(spec: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": "x/v1",
        "kind": "X",
        "metadata": {"name": "n", **metadata},
        "spec": spec,
    }


def custom_terms(raw: Object) -> dict[str, Any]:
    return {"api_version": "x/v1", "schema": Schema(raw)}


def test_a_nullable_custom_field_holds_the_null() -> None:
    raw = {"type": "object", "properties": {"spec": {"properties": {"a": {"nullable": True}}}}}
    result = applied(None, custom({"a": None}), "m", **custom_terms(raw))
    assert result.object["spec"] == {"a": None}


def test_a_custom_kind_s_metadata_is_like_any_other_s() -> None:
    more = custom_terms({"type": "object", "properties": {"spec": {"type": "object"}}})
    live = applied(None, custom({}, finalizers=["a"]), "x", **more).object
    live = applied(live, custom({}, finalizers=["b"]), "y", **more).object
    assert live["metadata"]["finalizers"] == ["a", "b"]
    assert owners(live)["y"]["f:metadata"] == {"f:finalizers": {'v:"b"': {}}}


def test_a_custom_kind_with_an_open_schema_stays_open() -> None:
    more = custom_terms({"x-kubernetes-preserve-unknown-fields": True})
    live = applied(None, {**custom({"a": {"b": 1}}), "extra": [1]}, "x", **more).object
    assert owners(live)["x"] == {
        "f:extra": {},
        "f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}},
    }
    closed = custom_terms({"type": "object", "properties": {"spec": {"type": "object"}}})
    with pytest.raises(BadRequest, match="extra: field not declared in schema"):
        applied(None, {**custom({}), "extra": 1}, "x", **closed)


def test_an_embedded_object_may_carry_what_every_object_has() -> None:
    embedded = {"x-kubernetes-embedded-resource": True, "type": "object", "properties": {"a": {}}}
    more = custom_terms({"type": "object", "properties": {"spec": embedded}})
    inner = {"apiVersion": "v1", "kind": "Y", "metadata": {"name": "z"}, "a": 1}
    assert applied(None, custom(inner), "x", **more).changed


def test_status_is_applied_through_its_subresource_alone() -> None:
    live = deployment()
    live["metadata"]["managedFields"] = track_update(None, live, **deployment_terms("creator"))
    config: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"x": "y"}},
        "status": {"readyReplicas": 3},
    }
    result = apply(live, config, **deployment_terms("controller", subresource="status"))
    assert owners(result.object)["controller"] == {"f:status": {"f:readyReplicas": {}}}
    with_status = {**config, "spec": {"replicas": 3}}
    result = apply(live, with_status, **deployment_terms("applier"))
    assert owners(result.object)["applier"] == {
        "f:metadata": {"f:labels": {"f:x": {}}},
        "f:spec": {"f:replicas": {}},
    }


def test_reordering_an_applied_list_is_a_change_without_a_conflict() -> None:
    live = deployment()
    live["metadata"]["managedFields"] = track_update(None, live, **deployment_terms("creator"))
    containers = [{"name": "sidecar"}, {"name": "web"}]
    config = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    result = apply(live, config, **deployment_terms("x"))
    names = [item["name"] for item in result.object["spec"]["template"]["spec"]["containers"]]
    assert names == ["sidecar", "web"]


def client_side(data: dict[str, str]) -> Object:
    """An object as client-side kubectl apply left it."""
    obj = config_map(**data)
    obj["metadata"]["annotations"] = {ANNOTATION: orjson.dumps(config_map(**data)).decode() + "\n"}
    entries = track_update(None, obj, **terms("kubectl-client-side-apply"))
    obj["metadata"]["managedFields"] = entries
    return obj


def test_kubectl_takes_over_from_its_client_side_self() -> None:
    result = applied(client_side({"a": "1"}), config_map(a="2"), "kubectl")
    assert result.object["data"] == {"a": "2"}
    kept = orjson.loads(result.object["metadata"]["annotations"][ANNOTATION])
    assert kept == config_map(a="2")


def test_other_managers_do_not_take_over_from_client_side_apply() -> None:
    with pytest.raises(Conflict):
        applied(client_side({"a": "1"}), config_map(a="2"), "other")


def test_kubectl_does_not_take_what_has_changed_since() -> None:
    live = client_side({"a": "1", "b": "1"})
    live = updated(live, {**live, "data": {"a": "9", "b": "1"}}, "someone")
    with pytest.raises(Conflict, match=r'Apply failed with 1 conflict.*"someone".*\.data\.a'):
        applied(live, config_map(a="2", b="2"), "kubectl")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"apiVersion":"v2"}'])
def test_a_broken_annotation_allows_nothing(text: str) -> None:
    live = client_side({"a": "1"})
    live["metadata"]["annotations"][ANNOTATION] = text
    with pytest.raises(Conflict):
        applied(live, config_map(a="2"), "kubectl")


def renamed(obj: Object, version: str) -> Object | None:
    """Version v2 calls ``data`` ``values``; v0 is no longer served."""
    if version == "v0":
        return None
    name = {"v1": "data", "v2": "values"}[version]
    new = {name if key in ("data", "values") else key: value for key, value in obj.items()}
    return {**new, "apiVersion": version}


def schema_at(version: str) -> Schema | None:
    return config_map_schema() if version == "v1" else None


def test_an_applier_that_changes_version_still_gives_up_what_it_no_longer_names() -> None:
    versions: dict[str, Any] = {"convert": renamed, "schema_at": schema_at}
    live = applied(None, config_map(a="1", b="1"), "x", **versions).object
    at_two = renamed(live, "v2")
    config = renamed(config_map(a="1"), "v2")
    assert config is not None
    result = applied(at_two, config, "x", api_version="v2", schema=None, **versions)
    assert result.object["values"] == {"a": "1"}
    assert result.object["apiVersion"] == "v2"
    entries = result.object["metadata"]["managedFields"]
    assert [entry["apiVersion"] for entry in entries] == ["v2"]


def test_an_owner_at_another_version_keeps_its_field_alive() -> None:
    versions: dict[str, Any] = {"convert": renamed, "schema_at": schema_at}
    live = applied(None, config_map(a="1", b="1"), "x", **versions).object
    two = renamed(config_map(b="1"), "v2")
    assert two is not None
    live_two = renamed(live, "v2")
    live_two = applied(live_two, two, "y", api_version="v2", schema=None, **versions).object
    live = renamed(live_two, "v1") or {}
    result = applied(live, config_map(a="1"), "x", **versions)
    assert result.object["data"] == {"a": "1", "b": "1"}
    with pytest.raises(Conflict, match=r'conflict with "y": \.values\.b'):
        applied(live, config_map(a="1", b="2"), "x", **versions)


def test_entries_of_a_version_no_longer_served_are_dropped() -> None:
    live = applied(None, config_map(a="1"), "x").object
    live["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    result = applied(live, config_map(a="2"), "y", convert=renamed)
    assert data_owners(result.object) == {"y": {"a"}}


def test_last_applied_at_a_version_no_longer_served_prunes_nothing() -> None:
    live = applied(None, config_map(a="1", b="1"), "x").object
    live["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    result = applied(live, config_map(a="1"), "x", convert=renamed)
    assert result.object["data"] == {"a": "1", "b": "1"}


# A small world: managers apply configurations of labels, data and list items.
DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)
ENV = st.dictionaries(st.sampled_from("pq"), st.sampled_from("12"), max_size=2)


def world_config(data: dict[str, str], env: dict[str, dict[str, str]]) -> Object:
    containers = [
        {"name": name, "env": [{"name": key, "value": value} for key, value in values.items()]}
        for name, values in env.items()
    ]
    config: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": data},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    return config


CONFIGS = st.builds(
    world_config, DATA, st.dictionaries(st.sampled_from(["c", "d"]), ENV, max_size=2)
)
MANAGERS = st.sampled_from(["x", "y"])
HISTORY = st.lists(st.tuples(MANAGERS, CONFIGS, st.booleans()), min_size=1, max_size=5)


def played(history: list[tuple[str, Object, bool]]) -> Object | None:
    """Return the object after a history of applies, conflicting ones having failed."""
    live: Object | None = None
    for manager, config, force in history:
        try:
            live = apply(live, config, force=force, **deployment_terms(manager)).object
        except Conflict:
            continue
    return live


@settings(max_examples=100, deadline=None)
@given(HISTORY, MANAGERS, CONFIGS)
def test_apply_is_idempotent(
    history: list[tuple[str, Object, bool]], manager: str, config: Object
) -> None:
    once = apply(played(history), config, force=True, **deployment_terms(manager))
    twice = apply(once.object, config, **deployment_terms(manager, LATE))
    assert not twice.changed
    assert twice.object is once.object


@settings(max_examples=100, deadline=None)
@given(HISTORY, CONFIGS)
def test_managers_never_silently_overwrite_each_other(
    history: list[tuple[str, Object, bool]], config: Object
) -> None:
    live = played(history)
    assert live is not None
    try:
        result = apply(live, config, **deployment_terms("new")).object
    except Conflict:
        return
    before, after = flat(live), flat(result)
    assert {key: after.get(key) for key in before} == before


@settings(max_examples=100, deadline=None)
@given(CONFIGS)
def test_what_two_own_survives_one_giving_it_up(config: Object) -> None:
    live = apply(None, config, **deployment_terms("x")).object
    live = apply(live, config, **deployment_terms("y")).object
    left = apply(live, world_config({}, {}), **deployment_terms("x")).object
    assert flat(left) == flat(live)
    assert "x" not in {
        entry["manager"]
        for entry in left["metadata"]["managedFields"]
        if "f:spec" in entry["fieldsV1"]
    }


@settings(max_examples=100, deadline=None)
@given(CONFIGS, CONFIGS)
def test_one_applier_alone_gets_exactly_what_it_asks_for(first: Object, second: Object) -> None:
    live = apply(None, first, **deployment_terms("x")).object
    assert flat(apply(live, second, **deployment_terms("x")).object) == flat(second)


def flat(obj: Object) -> dict[str, str]:
    """Return the labels and environment of an object of the small world, by path."""
    labels = (obj.get("metadata") or {}).get("labels") or {}
    found = {f"label/{key}": value for key, value in labels.items()}
    spec = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    for container in spec.get("containers") or []:
        found[container["name"]] = "container"
        for variable in container.get("env") or []:
            found[f"{container['name']}/{variable['name']}"] = variable.get("value", "")
    return found
