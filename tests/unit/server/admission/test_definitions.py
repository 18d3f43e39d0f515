"""Custom kinds: served when defined, changed at once, gone with their objects."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.kit.server.harness import Server, serving
from tests.kit.server.objects import definition, thing, version
from tests.kit.sim.loop import virtual

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.org/v1/namespaces/default/things"


def conditions(obj: dict[str, Any]) -> dict[str, str]:
    return {c["type"]: c["status"] for c in obj["status"]["conditions"]}


async def resources(server: Server, group_version: str = "example.org/v1") -> set[str]:
    listed = await server.get(f"/apis/{group_version}")
    return {item["name"] for item in listed.body["resources"]} if listed.status == 200 else set()


@virtual
async def test_a_definition_is_established_when_its_creation_returns() -> None:
    async with serving() as server:
        made = await server.create(DEFINITIONS, definition())
        assert made.status == 201, made.body
        assert conditions(made.body) == {"NamesAccepted": "True", "Established": "True"}
        assert made.body["status"]["acceptedNames"]["kind"] == "Thing"
        assert made.body["status"]["storedVersions"] == ["v1"]
        assert made.body["spec"]["names"]["singular"] == "thing"
        assert await resources(server) == {"things", "things/status", "things/scale"}
        assert (await server.create(THINGS, thing("t", size=1))).status == 201


@virtual
async def test_names_in_use_are_not_given_twice() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        clash = definition("others", "Thing")
        made = (await server.create(DEFINITIONS, clash)).body
        assert conditions(made) == {"NamesAccepted": "False", "Established": "False"}
        accepted = next(c for c in made["status"]["conditions"] if c["type"] == "NamesAccepted")
        assert "Thing" in accepted["message"]
        assert "others" not in await resources(server)


@virtual
async def test_bad_definitions_are_refused() -> None:
    async with serving() as server:
        wrong_name = definition()
        wrong_name["metadata"]["name"] = "x.example.org"
        no_storage = definition(versions=[version("v1", storage=False)])
        no_schema = definition()
        del no_schema["spec"]["versions"][0]["schema"]
        bad_rule = definition()
        rule = [{"rule": "self.nothing > 3"}]
        schema = bad_rule["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["x-kubernetes-validations"] = rule
        for sent in (wrong_name, no_storage, no_schema, bad_rule):
            refused = await server.create(DEFINITIONS, sent)
            assert refused.status == 422, refused.body
            assert refused.body["details"]["causes"]


@virtual
async def test_a_changed_schema_is_in_force_at_once() -> None:
    async with serving() as server:
        defined = (await server.create(DEFINITIONS, definition())).body
        await server.create(THINGS, thing("t", size=1))
        before = (await server.get("/openapi/v3")).body["paths"]["apis/example.org/v1"]
        spec = defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["sail"] = {"type": "string", "maxLength": 3}
        changed = await server.put(f"{DEFINITIONS}/things.example.org", defined)
        assert changed.status == 200, changed.body
        assert (await server.get("/openapi/v3")).body["paths"]["apis/example.org/v1"] != before
        long = await server.create(THINGS, thing("u", size=1, sail="white"))
        assert long.status == 422
        made = await server.create(THINGS, thing("u", size=1, sail="red"))
        assert made.body["spec"]["sail"] == "red"


@virtual
async def test_versions_that_stop_being_served_are_gone_at_once() -> None:
    async with serving() as server:
        versions = [version("v1", storage=True), version("v2", storage=False)]
        defined = (await server.create(DEFINITIONS, definition(versions=versions))).body
        assert await resources(server, "example.org/v2")
        defined["spec"]["versions"][1]["served"] = False
        await server.put(f"{DEFINITIONS}/things.example.org", defined)
        assert not await resources(server, "example.org/v2")
        assert (await server.get("/apis/example.org/v2/things")).status == 404


@virtual
async def test_a_new_storage_version_is_remembered_beside_the_old() -> None:
    async with serving() as server:
        versions = [version("v1", storage=True), version("v2", storage=False)]
        defined = (await server.create(DEFINITIONS, definition(versions=versions))).body
        defined["spec"]["versions"][0]["storage"] = False
        defined["spec"]["versions"][1]["storage"] = True
        changed = await server.put(f"{DEFINITIONS}/things.example.org", defined)
        assert changed.body["status"]["storedVersions"] == ["v1", "v2"]


@virtual
async def test_objects_are_pruned_defaulted_and_validated() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        made = await server.create(THINGS, thing("t", size=2, shape="round"))
        assert made.body["spec"] == {"size": 2, "colour": "red"}
        assert made.warnings == ['299 - "unknown field \\"spec.shape\\""']
        wrong = await server.create(THINGS, thing("u", size="big"))
        assert wrong.status == 422
        assert wrong.body["details"]["causes"][0]["reason"] == "FieldValueTypeInvalid"
        small = await server.create(THINGS, thing("u", size=0))
        assert "should be greater than or equal to 1" in small.body["message"]
        nameless = {"metadata": {"name": "u"}, "spec": {}}
        assert (await server.create(THINGS, nameless)).status == 400


@virtual
async def test_selectable_fields_select() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        for size in (1, 2, 3):
            await server.create(THINGS, thing(f"t{size}", size=size))
        found = (await server.get(f"{THINGS}?fieldSelector=spec.size%3D2")).body["items"]
        assert [item["metadata"]["name"] for item in found] == ["t2"]
        assert (await server.get(f"{THINGS}?fieldSelector=spec.colour%3Dred")).status == 400


@virtual
async def test_status_and_scale_work_as_for_built_in_kinds() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        await server.create(THINGS, {**thing("t", size=1), "status": {"size": 9}})
        assert "status" not in (await server.get(f"{THINGS}/t")).body
        result = await server.patch(
            f"{THINGS}/t/status", {"status": {"size": 3}, "spec": {"size": 8}}
        )
        assert (result.body["spec"]["size"], result.body["status"]["size"]) == (1, 3)
        scale = (await server.get(f"{THINGS}/t/scale")).body
        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (1, 3)
        scale["spec"]["replicas"] = 6
        assert (await server.put(f"{THINGS}/t/scale", scale)).status == 200
        assert (await server.put(f"{THINGS}/t/scale", scale)).status == 409
        assert (await server.get(f"{THINGS}/t")).body["spec"]["size"] == 6


@virtual
async def test_deleting_a_definition_removes_its_objects_first() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        held = thing("held", size=1)
        held["metadata"]["finalizers"] = ["example.org/hold"]
        await server.create(THINGS, held)
        await server.create(THINGS, thing("free", size=1))
        going = await server.delete(f"{DEFINITIONS}/things.example.org")
        assert going.body["metadata"]["finalizers"] == [
            "customresourcecleanup.apiextensions.k8s.io"
        ]
        assert conditions(going.body)["Terminating"] == "True"
        await asyncio.sleep(1)
        (left,) = (await server.get(THINGS)).body["items"]
        assert left["metadata"]["name"] == "held"
        assert "deletionTimestamp" in left["metadata"]
        await server.patch(f"{THINGS}/held", {"metadata": {"finalizers": None}})
        await asyncio.sleep(1)
        assert (await server.get(f"{DEFINITIONS}/things.example.org")).status == 404
        assert (await server.get(THINGS)).status == 404
        assert (await server.create(DEFINITIONS, definition())).status == 201
        assert (await server.get(THINGS)).body["items"] == []


@virtual
async def test_a_type_being_deleted_takes_no_new_objects() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        held = thing("held", size=1)
        held["metadata"]["finalizers"] = ["example.org/hold"]
        await server.create(THINGS, held)
        await server.delete(f"{DEFINITIONS}/things.example.org")
        refused = await server.create(THINGS, thing("late", size=1))
        assert refused.status == 405
        assert refused.body["message"] == (
            "create not allowed while custom resource definition is terminating"
        )
        listed = (await server.get("/apis/example.org/v1")).body["resources"]
        result = {verb for each in listed if "/" not in each["name"] for verb in each["verbs"]}
        assert result == {"delete", "deletecollection", "get", "list", "watch"}
        changed = await server.patch(f"{THINGS}/held", {"spec": {"size": 2}})
        assert changed.status == 200


@virtual
async def test_whoever_clears_the_status_does_not_stop_the_type() -> None:
    async with serving() as server:
        defined = (await server.create(DEFINITIONS, definition())).body
        defined["status"] = {"conditions": [], "storedVersions": ["v1"]}
        changed = await server.put(f"{DEFINITIONS}/things.example.org/status", defined)
        assert changed.status == 200, changed.body
        assert conditions(changed.body)["Established"] == "True"
        assert (await server.get(THINGS)).status == 200


@virtual
async def test_rules_in_cel_judge_objects_and_their_changes() -> None:
    async with serving() as server:
        defined = definition()
        schema = defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["x-kubernetes-validations"] = [
            {"rule": "self.size < 10 || self.colour == 'blue'", "message": "only blue is big"},
            {"rule": "self.size >= oldSelf.size", "message": "things never shrink"},
        ]
        assert (await server.create(DEFINITIONS, defined)).status == 201
        big = await server.create(THINGS, thing("t", size=12))
        assert big.status == 422
        assert "only blue is big" in big.body["message"]
        assert (await server.create(THINGS, thing("t", size=5))).status == 201
        smaller = await server.patch(f"{THINGS}/t", {"spec": {"size": 4}})
        assert smaller.status == 422
        assert "things never shrink" in smaller.body["message"]


@virtual
async def test_a_restarted_server_knows_its_definitions() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        await server.create(THINGS, thing("t", size=1))
        async with serving(server.api.store, seed=2) as again:
            assert (await again.get(f"{THINGS}/t")).status == 200
            # And what one of them learns, the other does too.
            await again.create(DEFINITIONS, definition("boats", "Boat"))
            await asyncio.sleep(0.1)
            assert "boats" in await resources(server)


@virtual
async def test_a_condition_without_a_type_is_kept_like_any_other() -> None:
    async with serving() as server:
        assert (await server.create(DEFINITIONS, definition())).status == 201
        change = [{"op": "add", "path": "/status/conditions", "value": [{"message": "patched"}]}]
        path = f"{DEFINITIONS}/things.example.org/status"
        patched = await server.patch(path, change, "json")
        assert patched.status == 200, patched.body
        said = [each.get("message") for each in patched.body["status"]["conditions"]]
        assert "patched" in said
