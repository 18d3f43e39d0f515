"""Update tracking: who changes a field owns it, and nobody else does."""

from __future__ import annotations

import copy
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply import WriteTerms, track_update
from skerry.logic.machinery.apply.fieldset import has, paths
from tests.kit.machinery.kinds import (
    config_map,
    config_map_schema,
    deployment,
    deployment_schema,
    pod_schema,
)

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


def config_write(manager: str, now: str = EARLY, **more: Any) -> WriteTerms:
    terms = {"manager": manager, "api_version": "v1", "now": now, "schema": config_map_schema()}
    return cast("WriteTerms", {**terms, **more})


def deployment_write(manager: str, now: str = EARLY, **more: Any) -> WriteTerms:
    terms = {"manager": manager, "api_version": "apps/v1", "now": now}
    return cast("WriteTerms", {**terms, "schema": deployment_schema(), **more})


def created(obj: Object, by: WriteTerms) -> Object:
    return stamped(obj, track_update(None, obj, **by))


def updated(live: Object, new: Object, by: WriteTerms) -> Object:
    before = copy.deepcopy((live, new))
    entries = track_update(live, new, **by)
    assert (live, new) == before, "an input was changed"
    return stamped(new, entries)


def stamped(obj: Object, entries: list[Object] | None) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if entries is not None:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def owners(obj: Object) -> dict[str, Any]:
    """Return the fields of each manager, by name."""
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


def changed(obj: Object, **data: str | None) -> Object:
    new = copy.deepcopy(obj)
    for key, value in data.items():
        if value is None:
            del new["data"][key]
        else:
            new["data"][key] = value
    return new


def test_who_creates_an_object_owns_what_it_set() -> None:
    obj = created(config_map(a="1", b="2"), config_write("creator"))
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "creator",
            "operation": "Update",
            "apiVersion": "v1",
            "time": EARLY,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
        }
    ]


def test_a_created_deployment_is_owned_as_kubernetes_has_it() -> None:
    fields = owners(created(deployment(), deployment_write("kubectl-create")))["kubectl-create"]
    assert set(fields) == {"f:metadata", "f:spec"}
    assert set(fields["f:metadata"]) == {"f:annotations", "f:labels"}
    spec = fields["f:spec"]
    # What a typed decoder makes of nothing is not owned; what it would leave out is.
    assert "." not in spec
    assert "." not in spec["f:strategy"]
    assert spec["f:strategy"]["f:rollingUpdate"] == {
        ".": {},
        "f:maxSurge": {},
        "f:maxUnavailable": {},
    }
    assert spec["f:selector"] == {}
    containers = spec["f:template"]["f:spec"]["f:containers"]
    assert list(containers) == ['k:{"name":"sidecar"}', 'k:{"name":"web"}']
    assert containers['k:{"name":"web"}']["f:ports"] == {
        ".": {},
        'k:{"containerPort":80,"protocol":"TCP"}': {
            ".": {},
            "f:containerPort": {},
            "f:name": {},
            "f:protocol": {},
        },
    }


def test_who_creates_a_custom_resource_owns_its_spec() -> None:
    raw = {"type": "object", "properties": {"spec": {"properties": {"a": {"type": "integer"}}}}}
    obj: Object = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "n"}, "spec": {"a": 1}}
    entries = track_update(
        None, obj, manager="m", api_version="x/v1", now=EARLY, schema=Schema(raw)
    )
    assert entries is not None
    assert entries[0]["fieldsV1"] == {"f:spec": {".": {}, "f:a": {}}}


def test_an_object_of_no_owned_fields_has_no_entries() -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}
    assert track_update(None, obj, **config_write("m")) is None


def test_an_unnamed_manager_is_unknown() -> None:
    assert set(owners(created(config_map(a="1"), config_write("")))) == {"unknown"}


def test_a_changed_field_goes_to_who_changed_it() -> None:
    live = created(config_map(a="1", b="2"), config_write("one"))
    new = updated(live, changed(live, a="9"), config_write("two", LATE))
    assert owners(new) == {
        "one": {"f:data": {".": {}, "f:b": {}}},
        "two": {"f:data": {"f:a": {}}},
    }
    times = {entry["manager"]: entry["time"] for entry in new["metadata"]["managedFields"]}
    assert times == {"one": EARLY, "two": LATE}


def test_who_owns_a_field_keeps_it_by_changing_it_again() -> None:
    live = created(config_map(a="1", b="2"), config_write("one"))
    new = updated(live, changed(live, a="9", c="3"), config_write("one", LATE))
    assert owners(new) == {"one": {"f:data": {".": {}, "f:a": {}, "f:b": {}, "f:c": {}}}}
    assert new["metadata"]["managedFields"][0]["time"] == LATE


def test_a_removed_field_is_nobody_s_and_the_time_stays() -> None:
    live = created(config_map(a="1", b="2"), config_write("one"))
    new = updated(live, changed(live, a=None), config_write("two", LATE))
    assert owners(new) == {"one": {"f:data": {".": {}, "f:b": {}}}}
    assert new["metadata"]["managedFields"][0]["time"] == EARLY


def test_a_manager_that_owns_nothing_any_more_is_gone() -> None:
    live = created(config_map(a="1"), config_write("one"))
    new = updated(live, changed(live, a="2"), config_write("two"))
    new = updated(new, {**new, "data": {"a": "2", "b": "3"}}, config_write("two"))
    bare = {key: value for key, value in new.items() if key != "data"}
    assert track_update(new, bare, **config_write("three")) is None


def test_an_update_that_changes_nothing_leaves_the_very_entries() -> None:
    live = created(config_map(a="1"), config_write("one"))
    again = copy.deepcopy(live)
    again["metadata"]["resourceVersion"] = "9"
    entries = track_update(live, again, **config_write("two", LATE))
    assert entries is live["metadata"]["managedFields"]


def test_a_client_that_drops_managed_fields_does_no_harm() -> None:
    live = created(config_map(a="1", b="2"), config_write("one"))
    new = changed(config_map(a="1", b="2"), a="3")
    assert owners(updated(live, new, config_write("two"))) == {
        "one": {"f:data": {".": {}, "f:b": {}}},
        "two": {"f:data": {"f:a": {}}},
    }


def test_a_client_that_sends_nonsense_does_no_harm() -> None:
    live = created(config_map(a="1"), config_write("one"))
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"] = [{"operation": "Nonsense"}]
    assert owners(updated(live, new, config_write("two"))) == owners(live)


def test_a_client_may_rewrite_ownership() -> None:
    live = created(config_map(a="1"), config_write("one"))
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"][0]["manager"] = "renamed"
    assert set(owners(updated(live, new, config_write("two")))) == {"renamed"}


def test_a_client_may_not_rewrite_ownership_through_a_subresource() -> None:
    live = created(config_map(a="1"), config_write("one"))
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"][0]["manager"] = "renamed"
    assert set(owners(updated(live, new, config_write("two", subresource="status")))) == {"one"}


def test_reset_ownership_stays_untracked_by_updates() -> None:
    live = created(config_map(a="1"), config_write("one"))
    resets: list[list[Object]] = [[], [{}]]
    for reset in resets:
        new = copy.deepcopy(live)
        new["metadata"]["managedFields"] = reset
        assert track_update(live, new, **config_write("two")) is None
    bare = stamped(live, None)
    assert track_update(bare, changed(bare, a="2"), **config_write("two")) is None


def test_status_written_with_the_object_is_nobody_s() -> None:
    live = created(deployment(), deployment_write("creator"))
    new = copy.deepcopy(live)
    new["status"]["replicas"] = 9
    assert owners(updated(live, new, deployment_write("other"))) == owners(live)


def test_status_written_by_itself_is_owned_and_nothing_else_is() -> None:
    live = created(deployment(), deployment_write("creator"))
    new = copy.deepcopy(live)
    new["status"]["replicas"] = 9
    new["spec"]["replicas"] = 9
    by = deployment_write("controller", LATE, subresource="status")
    entries = updated(live, new, by)["metadata"]["managedFields"]
    assert entries[1] == {
        "manager": "controller",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "time": LATE,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:replicas": {}}},
        "subresource": "status",
    }
    assert entries[0] == live["metadata"]["managedFields"][0]


def test_without_a_status_subresource_status_is_a_field_like_any() -> None:
    live = created(deployment(), deployment_write("creator", has_status_subresource=False))
    assert has(owners(live)["creator"], ("f:status", "f:replicas"))


def test_an_endpoint_may_name_what_it_does_not_let_through() -> None:
    by = config_write("m", reset={"f:data": {"f:a": {}}})
    assert owners(created(config_map(a="1", b="2"), by)) == {"m": {"f:data": {".": {}, "f:b": {}}}}


def test_objects_that_do_not_fit_their_schema_keep_their_owners() -> None:
    live = created(deployment(), deployment_write("creator"))
    new = copy.deepcopy(live)
    new["spec"]["template"]["spec"]["containers"] = [{"image": "nameless"}]
    entries = track_update(live, new, **deployment_write("other"))
    assert entries == live["metadata"]["managedFields"]


def test_an_eleventh_manager_makes_the_oldest_ancient() -> None:
    live = created(config_map(k0="0"), config_write("m00"))
    for index in range(1, 12):
        by = config_write(f"m{index:02}", f"2026-01-01T00:00:{index:02}Z")
        live = updated(live, changed(live, **{f"k{index}": "x"}), by)
    assert len(live["metadata"]["managedFields"]) == 10
    ancient = owners(live)["ancient-changes"]
    assert {path[-1] for path in paths(ancient)} == {"f:data", "f:k0", "f:k1", "f:k2"}


def test_one_manager_at_two_versions_has_two_entries() -> None:
    live = created(config_map(a="1"), config_write("m"))
    by: WriteTerms = {**config_write("m"), "api_version": "v2"}
    new = updated(live, changed(live, b="2"), by)
    assert [entry["apiVersion"] for entry in new["metadata"]["managedFields"]] == ["v1", "v2"]


def converted(obj: Object, version: str) -> Object | None:
    """Version v2 calls ``data`` ``values``; v0 is no longer served."""
    if version == "v0":
        return None
    names = {"v1": "data", "v2": "values"}
    return {
        {"data": names[version], "values": names[version]}.get(key, key): value
        for key, value in obj.items()
    } | {"apiVersion": version}


def test_managers_at_other_versions_lose_fields_by_the_names_they_know() -> None:
    live = created(config_map(a="1", b="2"), config_write("one"))
    at_two = converted(live, "v2")
    assert at_two is not None
    new = copy.deepcopy(at_two)
    new["values"]["a"] = "9"
    entries = track_update(
        at_two,
        new,
        manager="two",
        api_version="v2",
        now=LATE,
        schema=None,
        convert=converted,
        schema_at=lambda version: config_map_schema() if version == "v1" else None,
    )
    assert entries is not None
    assert {entry["manager"]: entry["fieldsV1"] for entry in entries} == {
        "one": {"f:data": {".": {}, "f:b": {}}},
        "two": {"f:values": {"f:a": {}}},
    }


def test_managers_of_a_version_no_longer_served_are_dropped_on_change() -> None:
    live = created(config_map(a="1", b="2"), config_write("one"))
    live["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    by = config_write("two", convert=converted)
    assert owners(updated(live, changed(live, a="2"), by)) == {"two": {"f:data": {"f:a": {}}}}


DATA = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)
WRITES = st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), DATA), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None)
@given(WRITES)
def test_every_field_belongs_to_who_set_it_last(writes: list[tuple[str, dict[str, str]]]) -> None:
    live: Object | None = None
    expected: dict[str, str] = {}
    for manager, data in writes:
        new = config_map(**data)
        before = live["data"] if live else {}
        expected = {
            key: expected[key] if before.get(key) == value else manager
            for key, value in data.items()
        }
        live = created(new, config_write(manager)) if live is None else (
            stamped(new, track_update(live, new, **config_write(manager)))
        )  # fmt: skip
        if not live["metadata"].get("managedFields"):
            return  # untracked from here on, as after a reset
    assert live is not None
    found = {
        path[1][2:]: manager
        for manager, fields in owners(live).items()
        for path in paths(fields)
        if path[0] == "f:data" and len(path) == 2
    }
    assert found == expected


def test_an_ephemeral_list_item_is_tracked_by_its_key() -> None:
    pod: Object = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}
    by: WriteTerms = {"manager": "m", "api_version": "v1", "now": EARLY, "schema": pod_schema()}
    live = created(pod, by)
    new = copy.deepcopy(live)
    new["spec"]["containers"].append({"name": "b"})
    entry = updated(live, new, {**by, "manager": "n"})["metadata"]["managedFields"][1]
    assert entry["fieldsV1"] == {
        "f:spec": {"f:containers": {'k:{"name":"b"}': {".": {}, "f:name": {}}}}
    }
