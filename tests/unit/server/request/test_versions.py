"""One stored type at several versions: converted, or merely called otherwise."""

from __future__ import annotations

from dataclasses import replace

from skerry.api.objects import Object
from skerry.api.schema import ANY, Schema
from skerry.logic.machinery.resource import Resource
from skerry.server.request.versions import Versions, from_storage, to_storage
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of


def at(version: str, storage: str = "v1", **changes: object) -> Resource:
    kind = resource("deployments", "apps")
    made = replace(kind, info=replace(kind.info, version=version), storage_version=storage)
    return replace(made, **changes)  # type: ignore[arg-type]


def renaming(obj: Object, version: str) -> Object:
    """Convert by a field that each version calls by its own name."""
    old = str(obj["apiVersion"]).rpartition("/")[2]
    return {"apiVersion": f"apps/{version}", f"of_{version}": obj[f"of_{old}"]}


def test_without_a_conversion_only_the_version_is_rewritten() -> None:
    obj = {"apiVersion": "apps/v2", "spec": {"a": 1}}
    assert to_storage(at("v2"), obj) == {"apiVersion": "apps/v1", "spec": {"a": 1}}
    assert from_storage(at("v2"), obj)["apiVersion"] == "apps/v2"
    core = replace(resource("configmaps"), storage_version="v9")
    assert to_storage(core, {"apiVersion": "v1"}) == {"apiVersion": "v9"}


def test_a_conversion_goes_both_ways() -> None:
    kind = at("v2", convert=renaming)
    stored = to_storage(kind, {"apiVersion": "apps/v2", "of_v2": 7})
    assert stored == {"apiVersion": "apps/v1", "of_v1": 7}
    assert from_storage(kind, stored) == {"apiVersion": "apps/v2", "of_v2": 7}


def test_old_objects_get_the_defaults_of_today() -> None:
    def default(obj: Object) -> None:
        obj["filled"] = True

    assert from_storage(at("v1", since=5, default=default), {})["filled"] is True
    assert "filled" not in from_storage(at("v1", default=default), {})


def test_what_another_manager_owns_is_seen_at_its_version() -> None:
    v1, v2 = at("v1", convert=renaming), at("v2", convert=renaming)
    versions = Versions(call_of(v1, types=(v2, resource("configmaps"))))
    obj = {"apiVersion": "apps/v1", "of_v1": 7}
    assert versions.converted(obj, "apps/v2") == {"apiVersion": "apps/v2", "of_v2": 7}
    assert obj == {"apiVersion": "apps/v1", "of_v1": 7}
    assert versions.converted(obj, "apps/v3") is None
    assert versions.converted({"apiVersion": "apps/v3"}, "apps/v1") is None


def test_schemas_are_those_of_the_same_stored_type() -> None:
    mine = Schema({"type": "object"})
    v1, v2 = at("v1"), at("v2", schema=mine)
    stranger = at("v3", identity="of an export", schema=ANY)
    versions = Versions(call_of(v1, types=(v2, stranger)))
    assert versions.schema("apps/v1") is v1.schema
    assert versions.schema("apps/v2") is mine
    assert versions.schema("apps/v3") is None
