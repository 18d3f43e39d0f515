"""What a body's length does not tell: validation that turns out long leaves the loop."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.server.offload.offload import Offload
from tests.kit.server.harness import Server, serving
from tests.kit.server.loopback import Loopback
from tests.kit.server.objects import CORE, config_map

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
# Quadratic, and within what Kubernetes lets a rule cost.
COSTLY = "self.numbers.all(n, self.numbers.all(m, n + m >= 0))"


def definition(rule: str = "true", fields: int = 0) -> dict[str, Any]:
    numbers = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
    text = {"type": "string", "pattern": "(.*a.{300}b)"}
    spec = {
        "type": "object",
        "properties": {"numbers": numbers, "text": text},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    status = {f"field-{number}": {"type": "string"} for number in range(fields)}
    properties = {"spec": spec, "status": {"type": "object", "properties": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }


def thing(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": spec,
    }


async def created(server: Server, made: dict[str, Any]) -> int:
    return (await server.create(THINGS, made)).status


async def test_an_object_with_costly_rules_is_validated_by_a_worker() -> None:
    workers = Loopback()
    async with serving(offload=Offload(workers)) as server:
        assert (await server.create(CRDS, definition(COSTLY))).status == 201
        workers.done.clear()
        assert await created(server, thing("small", numbers=[1, 2, 3])) == 201
        assert workers.done == []
        assert await created(server, thing("large", numbers=list(range(300)))) == 201
        assert set(workers.done) == {"Finish"}
        workers.done.clear()
        refused = await server.create(THINGS, thing("endless", numbers=list(range(900))))
        assert refused.status == 422
        assert "call cost exceeds limit" in refused.body["message"]
        assert set(workers.done) == {"Finish"}
        workers.done.clear()
        assert (await server.create(f"{CORE}/configmaps", config_map("a"))).status == 201
        assert workers.done == []


@pytest.mark.parametrize("kind", ["merge", "json", "apply"])
async def test_so_is_a_patch_that_makes_it_costly(kind: str) -> None:
    workers = Loopback()
    numbers = list(range(300))
    patches: dict[str, Any] = {
        "merge": {"spec": {"numbers": numbers}},
        "json": [{"op": "add", "path": "/spec/numbers", "value": numbers}],
        "apply": thing("a", numbers=numbers),
    }
    async with serving(offload=Offload(workers)) as server:
        await server.create(CRDS, definition(COSTLY))
        assert await created(server, thing("a", numbers=[])) == 201
        workers.done.clear()
        path = f"{THINGS}/a?fieldManager=me&force=true"
        if kind != "apply":
            path = f"{THINGS}/a"
        reply = await server.patch(path, patches[kind], kind)
        assert reply.status == 200, reply.body
        assert "Finish" in workers.done
        assert reply.body["spec"]["numbers"] == numbers


async def test_a_costly_pattern_is_searched_for_by_a_worker() -> None:
    workers = Loopback()
    async with serving(offload=Offload(workers)) as server:
        await server.create(CRDS, definition())
        await created(server, thing("first", text="a" + "y" * 300 + "b"))
        workers.done.clear()
        assert await created(server, thing("short", text="a" + "x" * 300 + "b")) == 201
        assert workers.done == []
        assert await created(server, thing("long", text="ab" * 3000)) == 201
        assert set(workers.done) == {"Finish"}


async def test_without_workers_everything_is_judged_here() -> None:
    async with serving() as server:
        assert (await server.create(CRDS, definition(COSTLY, fields=400))).status == 201
        assert await created(server, thing("large", numbers=list(range(300)))) == 201
