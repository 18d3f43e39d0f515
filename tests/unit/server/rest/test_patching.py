"""PATCH over HTTP: the three patch types, and server-side apply."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.kit.server.harness import Reply, Server, serving
from tests.kit.server.objects import CORE, config_map, definition, deployment, thing
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
THINGS = "/apis/example.org/v1/namespaces/default/things"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def applied(
    server: Server, path: str, obj: dict[str, Any], manager: str = "me", more: str = ""
) -> Reply:
    body = yaml.safe_dump(obj).encode()
    return await server.patch(f"{path}?fieldManager={manager}{more}", body, "apply")


@virtual
async def test_merge_patches_set_and_remove() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c", {"x": "1"}, a="1", b="2"))
        changed = await server.patch(f"{MAPS}/c", {"data": {"a": None, "c": "3"}})
        assert changed.body["data"] == {"b": "2", "c": "3"}
        refused = await server.patch(f"{MAPS}/c", [1])
        assert refused.status == 400


@virtual
async def test_a_patch_that_makes_no_such_object_shows_what_it_would_be() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c", a="1"))
        other = [{"op": "replace", "path": "/kind", "value": "Other"}]
        refused = await server.patch(f"{MAPS}/c", other, "json")
        assert refused.status == 422
        shown = refused.body["message"]
        assert '"" is invalid: patch: Invalid value: "{\\"' in shown, "JSON, as clients write it"
        assert "\x00" not in shown, "nothing of how it is stored"


@virtual
async def test_a_strategic_patch_that_does_not_fit_is_shown_itself() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c", a="1"))
        refused = await server.patch(f"{MAPS}/c", {"metadata": {"labels": "x"}}, "strategic")
        assert (refused.status, refused.body["message"]) == (
            422,
            (
                ' "" is invalid: patch: Invalid value: "map[metadata:map[labels:x]]": '
                "cannot restore map from string"
            ),
        )
        unknown = f"{MAPS}/c?fieldValidation=Strict"
        refused = await server.patch(unknown, {"more": {"b": [1, None]}}, "strategic")
        assert refused.body["message"] == (
            ' "" is invalid: patch: Invalid value: "map[more:map[b:[1 <nil>]]]": '
            'strict decoding error: unknown field "more"'
        )


@virtual
async def test_what_a_merge_patch_makes_is_refused_in_the_decoders_words_alone() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c", a="1"))
        refused = await server.patch(f"{MAPS}/c", {"data": 1})
        assert refused.status == 422
        assert refused.body["message"].endswith(
            '": json: cannot unmarshal number into Go struct field ConfigMap.data '
            "of type map[string]string"
        )


@virtual
async def test_json_patches_act_in_order_or_not_at_all() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("c", a="1"))
        operations = [
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "move", "from": "/data/a", "path": "/data/b"},
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/x~1y", "value": "slash"},
        ]
        changed = await server.patch(f"{MAPS}/c", operations, "json")
        assert changed.body["data"] == {"b": "1"}
        assert changed.body["metadata"]["annotations"] == {"x/y": "slash"}
        failing = [
            {"op": "add", "path": "/data/z", "value": "1"},
            {"op": "test", "path": "/data/b", "value": "other"},
        ]
        refused = await server.patch(f"{MAPS}/c", failing, "json")
        assert refused.status == 422
        assert "z" not in (await server.get(f"{MAPS}/c")).body["data"]
        attempts: list[Any] = [{"op": "add"}, [{"op": "fly", "path": "/a"}], [[]], "x", [{}]]
        for nonsense in attempts:
            assert (await server.patch(f"{MAPS}/c", nonsense, "json")).status in (400, 422)


@virtual
async def test_strategic_patches_merge_lists_by_key() -> None:
    async with serving() as server:
        await server.create(DEPLOYMENTS, deployment("web"))
        side = {"containers": [{"name": "side", "image": "i"}]}
        patch = {"spec": {"template": {"spec": side}}}
        changed = await server.patch(f"{DEPLOYMENTS}/web", patch, "strategic")
        containers = changed.body["spec"]["template"]["spec"]["containers"]
        assert sorted(c["name"] for c in containers) == ["main", "side"]
        side["containers"] = [{"name": "side", "$patch": "delete"}]
        changed = await server.patch(f"{DEPLOYMENTS}/web", patch, "strategic")
        containers = changed.body["spec"]["template"]["spec"]["containers"]
        assert [c["name"] for c in containers] == ["main"]


@virtual
async def test_custom_kinds_take_no_strategic_patches() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        await server.create(THINGS, thing("t", size=1))
        refused = await server.patch(f"{THINGS}/t", {"spec": {"size": 2}}, "strategic")
        assert refused.status == 415
        assert "application/merge-patch+json" in refused.body["message"]
        assert (await server.patch(f"{THINGS}/t", {"spec": {"size": 2}})).status == 200


@virtual
async def test_a_patch_cannot_break_an_object_or_rename_it() -> None:
    async with serving() as server:
        await server.create(DEPLOYMENTS, deployment("web"))
        path = f"{DEPLOYMENTS}/web"
        for patch, code in (
            ({"spec": {"replicas": -1}}, 422),
            ({"spec": {"replicas": "x"}}, 422),
            ({"metadata": {"name": "other"}}, 400),
            ({"metadata": {"namespace": "other"}}, 400),
            ({"kind": "Pod"}, 422),
            ({"apiVersion": "v1"}, 422),
            ({"metadata": {"uid": "other"}}, 422),
            ({"metadata": None}, 200),
            ({"spec": {"selector": {"matchLabels": {"app": "else"}}}}, 422),
        ):
            assert (await server.patch(path, patch)).status == code, patch
        assert (await server.patch(f"{path}?force=true", {})).status == 422
        assert (await server.patch(f"{DEPLOYMENTS}/nobody", {})).status == 404


@virtual
async def test_apply_creates_then_changes_then_rests() -> None:
    async with serving() as server:
        path = f"{DEPLOYMENTS}/web"
        made = await applied(server, path, deployment("web", 2))
        assert made.status == 201
        (entry,) = made.body["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("me", "Apply")
        again = await applied(server, path, deployment("web", 2))
        assert again.status == 200
        assert (
            again.body["metadata"]["resourceVersion"] == (made.body["metadata"]["resourceVersion"])
        )
        changed = await applied(server, path, deployment("web", 3))
        assert changed.body["metadata"]["generation"] == 2


@virtual
async def test_a_manager_may_not_silently_take_what_another_holds() -> None:
    async with serving() as server:
        path = f"{MAPS}/c"
        await applied(server, path, config_map("c", a="1"), "one")
        refused = await applied(server, path, config_map("c", a="2"), "two")
        assert refused.status == 409
        assert refused.body["reason"] == "Conflict"
        assert refused.body["message"] == (
            'Apply failed with 1 conflict: conflict with "one": .data.a'
        )
        assert refused.body["details"]["causes"] == [
            {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
        ]
        forced = await applied(server, path, config_map("c", a="2"), "two", "&force=true")
        assert forced.body["data"] == {"a": "2"}
        agreed = await applied(server, path, config_map("c", a="2"), "one")
        assert agreed.status == 200, "agreeing is no conflict"


@virtual
async def test_what_a_manager_no_longer_applies_goes_unless_another_holds_it() -> None:
    async with serving() as server:
        path = f"{MAPS}/c"
        await applied(server, path, config_map("c", a="1", both="x"), "one")
        await applied(server, path, config_map("c", b="2", both="x"), "two")
        left = await applied(server, path, config_map("c"), "one")
        assert left.body["data"] == {"b": "2", "both": "x"}


@virtual
async def test_what_admission_added_survives_an_apply_after_an_update() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/services?fieldManager=a", _service(80))
        live = (await server.get(f"{CORE}/services/s")).body
        changed = await applied(server, f"{CORE}/services/s", _service(80), "a")
        assert changed.status == 200, changed.body
        assert changed.body["spec"]["clusterIP"] == live["spec"]["clusterIP"]


def _service(port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": {"a": "b"}, "ports": [{"port": port}]},
    }


@virtual
async def test_apply_insists_on_manager_kind_and_schema() -> None:
    async with serving() as server:
        body = yaml.safe_dump(config_map("c")).encode()
        refused = await server.patch(f"{MAPS}/c", body, "apply")
        assert refused.status == 422
        assert (
            "fieldManager: Required value: is required for apply patch" in (refused.body["message"])
        )
        assert (await applied(server, f"{MAPS}/c", {"metadata": {"name": "c"}})).status == 400
        assert (await applied(server, f"{MAPS}/d", config_map("c"))).status == 400
        managed = config_map("c")
        managed["metadata"]["managedFields"] = [{"manager": "x"}]
        assert (await applied(server, f"{MAPS}/c", managed)).status == 400
        odd = {**config_map("c"), "colour": "red"}
        assert (await applied(server, f"{MAPS}/c", odd)).status == 500


@virtual
async def test_apply_reaches_the_status_through_its_own_door_only() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        await applied(server, f"{THINGS}/t", {**thing("t", size=1), "status": {"size": 9}})
        live = (await server.get(f"{THINGS}/t")).body
        assert "status" not in live
        reported = {**thing("t"), "status": {"size": 4}}
        changed = await applied(server, f"{THINGS}/t/status", reported, "controller")
        assert changed.body["status"] == {"size": 4}
        assert changed.body["spec"]["size"] == 1
        missing = await applied(server, f"{THINGS}/nobody/status", {**reported, "metadata": {}})
        assert missing.status == 404


@virtual
async def test_apply_rehearses_too() -> None:
    async with serving() as server:
        made = await applied(server, f"{MAPS}/c", config_map("c", a="1"), more="&dryRun=All")
        assert made.status == 201
        assert (await server.get(f"{MAPS}/c")).status == 404


@virtual
async def test_list_maps_are_shared_item_by_item() -> None:
    async with serving() as server:
        path = f"{DEPLOYMENTS}/web"
        await applied(server, path, deployment("web"), "one")
        other = deployment("web")
        del other["spec"]["replicas"]
        other["spec"]["template"]["spec"]["containers"] = [{"name": "side", "image": "i"}]
        both = await applied(server, path, other, "two")
        assert both.status == 200, both.body
        containers = both.body["spec"]["template"]["spec"]["containers"]
        assert [c["name"] for c in containers] == ["main", "side"]


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore", ""])
async def test_a_field_that_no_schema_has_cannot_be_applied(validation: str) -> None:
    async with serving() as server:
        query = f"fieldManager=me&fieldValidation={validation}"
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "unknownMeta": 1},
            "spec": {"containers": [{"name": "c", "image": "i", "imagine": "x"}]},
        }
        path = f"/api/v1/namespaces/default/pods/p?{query}"
        reply = await server.patch(path, body, "apply")
        assert (reply.status, reply.body.get("reason")) == (500, None)
        assert reply.body["message"] == (
            "failed to create typed patch object (default/p; v1, Kind=Pod): errors:\n"
            "  .metadata.unknownMeta: field not declared in schema\n"
            '  .spec.containers[name="c"].imagine: field not declared in schema'
        )
        del body["metadata"]["unknownMeta"]
        reply = await server.patch(path, body, "apply")
        assert reply.body["message"] == (
            "failed to create typed patch object (default/p; v1, Kind=Pod): "
            '.spec.containers[name="c"].imagine: field not declared in schema'
        )


TWICE = b"""apiVersion: v1
kind: ConfigMap
metadata:
  name: c
data:
  a: one
  a: two
"""


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore"])
async def test_a_key_that_an_applied_configuration_has_twice_is_found(validation: str) -> None:
    async with serving() as server:
        path = f"{MAPS}/c?fieldManager=me&fieldValidation={validation}"
        reply = await server.patch(path, TWICE, "apply")
        if validation == "Strict":
            assert (reply.status, reply.body["message"]) == (
                400,
                (
                    "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal "
                    'errors:\n  line 7: key "a" already set in map'
                ),
            )
            return
        assert reply.status == 201
        warned = ['299 - "line 7: key \\"a\\" already set in map"']
        assert reply.warnings == (warned if validation == "Warn" else [])


async def test_a_key_that_yaml_has_twice_is_named_before_unknown_fields() -> None:
    async with serving() as server:
        body = TWICE + b"zz: 1\n"
        path = f"{MAPS}?fieldValidation=Strict"
        reply = await server.create(path, body, content_type="application/yaml")
        assert (reply.status, reply.body["message"]) == (
            400,
            (
                'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding '
                'error: yaml: unmarshal errors:\n  line 7: key "a" already set in map, '
                'unknown field "zz"'
            ),
        )


async def test_json_without_a_type_is_searched_for_keys_given_twice() -> None:
    async with serving() as server:
        body = b'{"metadata":{"name":"c"},"data":{"a":"x","a":"y"}}'
        reply = await server.create(f"{MAPS}?fieldValidation=Strict", body, content_type="")
        assert reply.status == 400
        assert reply.body["message"].endswith('strict decoding error: duplicate field "data.a"')


@virtual
async def test_conflicts_come_before_a_name_that_is_not_the_urls() -> None:
    async with serving() as server:
        await server.create(f"{MAPS}?fieldManager=other", config_map("c", a="1"))
        named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another"}}
        taking = {**named, "data": {"a": "2"}}
        assert (await applied(server, f"{MAPS}/c", named)).status == 400
        assert (await applied(server, f"{MAPS}/c", taking)).status == 409
        # Whatever force is set to, it is meant.
        assert (await applied(server, f"{MAPS}/c", taking, more="&force=maybe")).status == 400
