"""Admission webhooks as clients meet them: a real server over real TLS answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from skerry.api.keys import PLAIN, ObjectKey
from skerry.server.codec import encode
from skerry.store.base import Write
from tests.kit.server.edges import running_edge_hub
from tests.kit.server.harness import Reply, Server, serving
from tests.kit.server.hub import BINDINGS, WIDGETS, Hub, provider, running_hub, widget
from tests.kit.server.hub import binding as api_binding
from tests.kit.server.webhooks import (
    CONFIG_MAPS,
    Answer,
    Review,
    allow,
    configuration,
    deny,
    patching,
    reviewed,
    webhook,
    webhook_server,
)

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{ADMISSION}/validatingwebhookconfigurations"
MUTATING = f"{ADMISSION}/mutatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EVERYTHING = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
LOOPBACK = ("127.0.0.0/8",)


def config_map(name: str = "a", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data or {"a": "b"}}


async def configured(server: Server, kind: str, *webhooks: dict[str, Any], name: str = "c") -> None:
    reply = await server.create(kind, configuration(*webhooks, name=name))
    assert reply.status == 201, reply.body


def added(name: str, value: str = "y") -> dict[str, str]:
    return {"op": "add", "path": f"/data/{name}", "value": value}


def said(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.body["message"]


# -- what is asked ---------------------------------------------------------------------------


async def test_a_configuration_is_in_force_when_its_writer_is_answered() -> None:
    async with webhook_server() as hooks, serving() as server:
        await configured(server, VALIDATING, webhook(hooks.on("/v", deny)))
        refused = await server.create(MAPS, config_map())
        assert refused.body == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'admission webhook "w.example.com" denied the request: no',
            "code": 400,
        }
        await server.delete(f"{VALIDATING}/c")
        assert (await server.create(MAPS, config_map())).status == 201


async def test_a_webhook_is_asked_as_kubernetes_asks() -> None:
    async with webhook_server() as hooks, serving() as server:
        await configured(server, MUTATING, webhook(hooks.on("/m", allow), timeoutSeconds=3))
        await configured(server, VALIDATING, webhook(hooks.on("/v", allow)))
        path = f"{MAPS}?fieldManager=fm&fieldValidation=Strict"
        made = {"metadata": {"generateName": "gen-"}, "data": {"a": "b"}}
        stored = (await server.create(path, made)).body
        assert [target for target, _ in hooks.asked] == ["/m?timeout=3s", "/v?timeout=10s"]
        mutating, validating = (review["request"] for _, review in hooks.asked)
        assert "name" not in mutating
        unborn = mutating["object"]["metadata"]
        assert unborn["creationTimestamp"] is None
        assert not {"name", "uid"} & unborn.keys()
        assert validating["name"] == stored["metadata"]["name"]
        assert validating["object"]["metadata"]["uid"] == stored["metadata"]["uid"]
        assert "resourceVersion" not in validating["object"]["metadata"]
        kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
        resource = {"group": "", "version": "v1", "resource": "configmaps"}
        expected = {
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
            "oldObject": None,
            "dryRun": False,
            "options": {
                "kind": "CreateOptions",
                "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "fm",
                "fieldValidation": "Strict",
            },
        }
        assert {name: mutating[name] for name in expected} == expected
        assert mutating.keys() - expected.keys() == {"uid", "object"}


async def test_updates_patches_and_deletions_are_asked_about_too() -> None:
    rules = [{**CONFIG_MAPS, "operations": ["UPDATE", "DELETE"]}]
    async with webhook_server() as hooks, serving() as server:
        await server.create(MAPS, config_map())
        await configured(server, MUTATING, webhook(hooks.on("/m", allow), rules=rules))
        await server.patch(f"{MAPS}/a", {"data": {"a": "c"}})
        await server.delete(f"{MAPS}/a", {"kind": "DeleteOptions", "gracePeriodSeconds": 0})
        patched, deleted = (review["request"] for review in hooks.reviews("/m"))
        assert (patched["object"]["data"], patched["oldObject"]["data"]) == ({"a": "c"}, {"a": "b"})
        assert patched["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
        assert deleted["object"] is None
        assert "deletionTimestamp" not in deleted["oldObject"]["metadata"]
        assert deleted["options"]["gracePeriodSeconds"] == 0
        assert deleted["name"] == "a"


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({"rules": [{**CONFIG_MAPS, "operations": ["UPDATE"]}]}, 0),
        ({"rules": [{**CONFIG_MAPS, "scope": "Cluster"}]}, 0),
        ({"rules": [{**CONFIG_MAPS, "scope": "Namespaced"}]}, 1),
        ({"rules": [{**CONFIG_MAPS, "apiGroups": ["*"], "resources": ["*"]}]}, 1),
        ({"rules": [{**CONFIG_MAPS, "resources": ["configmaps/status"]}]}, 0),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, 0),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, 1),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, 0),
        ({"matchConditions": [{"name": "c", "expression": "object.data.a == 'b'"}]}, 1),
        ({"matchConditions": [{"name": "c", "expression": "'x' in object.data"}]}, 0),
    ],
)
async def test_only_what_a_webhook_means_is_sent_to_it(more: dict[str, Any], asked: int) -> None:
    async with webhook_server() as hooks, serving() as server:
        await configured(server, VALIDATING, webhook(hooks.on("/v", allow), **more))
        assert (await server.create(MAPS, config_map())).status == 201
        assert len(hooks.asked) == asked


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            "Fail",
            (
                403,
                (
                    "configmaps \"a\" is forbidden: expression 'object.none == 1' resulted in "
                    "error: no such key: none"
                ),
            ),
        ),
        ("Ignore", (201, "")),
    ],
)
async def test_a_condition_that_fails_is_a_matter_of_the_failure_policy(
    policy: str, expected: tuple[int, str]
) -> None:
    conditions = [{"name": "c", "expression": "object.none == 1"}]
    async with webhook_server() as hooks, serving() as server:
        hook = webhook(hooks.on("/v", deny), matchConditions=conditions, failurePolicy=policy)
        await configured(server, VALIDATING, hook)
        reply = await server.create(MAPS, config_map())
        assert (reply.status, reply.body.get("message", "")) == expected
        assert not hooks.asked


async def test_a_rule_for_one_version_means_the_others_unless_exact_is_asked_for() -> None:
    rule = {**CONFIG_MAPS, "apiGroups": ["ex.io"], "resources": ["foos"]}
    async with webhook_server() as hooks, serving() as server:
        await server.create(DEFINITIONS, definition("v1", "v2"))
        add = patching({"op": "add", "path": "/spec", "value": {"a": "by webhook"}})
        equivalent = webhook(hooks.on("/e", add), "e.example.com", rules=[rule])
        exact = webhook(hooks.on("/x", deny), "x.example.com", rules=[rule], matchPolicy="Exact")
        await configured(server, MUTATING, equivalent, exact)
        foo = {"apiVersion": "ex.io/v2", "kind": "Foo", "metadata": {"name": "f"}}
        made = await server.create("/apis/ex.io/v2/namespaces/default/foos", foo)
        assert (made.body["apiVersion"], made.body["spec"]) == ("ex.io/v2", {"a": "by webhook"})
        request = hooks.reviews("/e")[0]["request"]
        assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
        assert request["object"]["apiVersion"] == "ex.io/v1"
        assert not hooks.reviews("/x")


def definition(*versions: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {}}}}}
    schema["properties"]["spec"]["properties"]["a"] = {"type": "string"}  # type: ignore[index]
    return {
        "metadata": {"name": "foos.ex.io"},
        "spec": {
            "group": "ex.io",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                }
                for name in versions
            ],
        },
    }


async def test_a_binding_is_not_sent_as_the_pod_it_changes() -> None:
    rules = [{**CONFIG_MAPS, "operations": ["*"], "resources": ["pods/*"]}]
    pods = "/api/v1/namespaces/default/pods"
    async with webhook_server() as hooks, serving() as server:
        await server.create(
            "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
        )
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await server.create(pods, pod)
        await configured(server, MUTATING, webhook(hooks.on("/m", allow), rules=rules))
        await configured(server, VALIDATING, webhook(hooks.on("/v", allow), rules=rules))
        target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        assert (await server.create(f"{pods}/p/binding", target)).status == 201
        patch = {"status": {"phase": "Running"}}
        assert (await server.patch(f"{pods}/p/status", patch)).status == 200
        for path in ("/m", "/v"):
            kinds = [each["request"]["object"]["kind"] for each in hooks.reviews(path)]
            assert kinds == ["Binding", "Pod"]


async def test_configurations_are_never_sent_to_webhooks() -> None:
    async with webhook_server() as hooks, serving() as server:
        for kind in (MUTATING, VALIDATING):
            await configured(server, kind, webhook(hooks.on("/v", deny), rules=[EVERYTHING]))
        assert (await server.create(MAPS, config_map())).status == 400
        for kind in (MUTATING, VALIDATING):
            assert (await server.patch(f"{kind}/c", {"metadata": {"labels": {"a": "b"}}})).status
            assert (await server.delete(f"{kind}/c")).status == 200
        assert (await server.create(MAPS, config_map())).status == 201


# -- what mutating webhooks make of objects ----------------------------------------------------


async def test_mutating_webhooks_go_by_configuration_name_then_by_place() -> None:
    async with webhook_server() as hooks, serving() as server:
        for place in ("a0", "a1", "b0"):
            hooks.on(f"/{place}", patching(added(place)))
        second = webhook(hooks.client("/b0"), "first-by-name.example.com")
        await configured(server, MUTATING, second, name="b")
        pair = [webhook(hooks.client(f"/a{n}"), f"z{9 - n}.example.com") for n in (0, 1)]
        await configured(server, MUTATING, *pair, name="a")
        made = await server.create(MAPS, config_map())
        assert list(made.body["data"]) == ["a", "a0", "a1", "b0"]
        # What webhooks add belongs to no field manager.
        assert made.body["metadata"]["managedFields"][0]["fieldsV1"]["f:data"].keys() == {
            ".",
            "f:a",
        }


async def test_a_webhook_is_asked_again_when_a_later_one_changes_something() -> None:
    async with webhook_server() as hooks, serving() as server:
        for path in ("/needed", "/never"):
            hooks.on(path, allow)
        hooks.on("/changes", patching(added("x")))
        await configured(
            server,
            MUTATING,
            webhook(hooks.client("/needed"), "n.example.com", reinvocationPolicy="IfNeeded"),
            webhook(hooks.client("/never"), "o.example.com"),
            webhook(hooks.client("/changes"), "p.example.com", reinvocationPolicy="IfNeeded"),
        )
        await server.create(MAPS, config_map())
        asked = [target.partition("?")[0] for target, _ in hooks.asked]
        assert asked == ["/needed", "/never", "/changes", "/needed"]
        assert hooks.asked[-1][1]["request"]["object"]["data"] == {"a": "b", "x": "y"}


async def test_the_servers_own_rules_see_what_a_webhook_made() -> None:
    """A container that is injected gets the account's token, like those that were there."""
    rules = [{**CONFIG_MAPS, "resources": ["pods"]}]
    sidecar = {"name": "sidecar", "image": "i"}
    inject = patching({"op": "add", "path": "/spec/containers/-", "value": sidecar})
    async with webhook_server() as hooks, serving() as server:
        await server.create(
            "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
        )
        await configured(server, MUTATING, webhook(hooks.on("/m", inject), rules=rules))
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        made = (await server.create("/api/v1/namespaces/default/pods", pod)).body
        containers = made["spec"]["containers"]
        assert [each["name"] for each in containers] == ["c", "sidecar"]
        assert containers[0]["volumeMounts"] == containers[1]["volumeMounts"]
        assert len(made["spec"]["volumes"]) == 1


async def test_what_a_webhook_adds_is_judged_like_what_a_client_sends() -> None:
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    rules = [{**CONFIG_MAPS, "resources": ["pods"]}]
    escape = patching({"op": "add", "path": "/spec/hostNetwork", "value": True})
    async with webhook_server() as hooks, serving() as server:
        await server.create(
            "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
        )
        await server.patch("/api/v1/namespaces/default", {"metadata": {"labels": restricted}})
        await configured(server, MUTATING, webhook(hooks.on("/m", escape), rules=rules))
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        refused = await server.create("/api/v1/namespaces/default/pods", pod)
        assert refused.status == 403
        assert "host namespaces" in refused.body["message"]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (
            {"op": "add", "path": "/data/x", "value": 7},
            (
                500,
                (
                    "Internal error occurred: json: cannot unmarshal number into Go struct field "
                    "ConfigMap.data of type string"
                ),
            ),
        ),
        (
            {"op": "replace", "path": "/apiVersion", "value": "v2"},
            (
                500,
                (
                    'Internal error occurred: no kind "ConfigMap" is registered for version "v2" '
                    'in scheme "pkg/runtime/scheme.go:100"'
                ),
            ),
        ),
        (
            {"op": "replace", "path": "/metadata/namespace", "value": "other"},
            (
                400,
                (
                    "the namespace of the provided object does not match the namespace sent on the "
                    "request"
                ),
            ),
        ),
        (
            {"op": "add", "path": "/metadata/resourceVersion", "value": "5"},
            (500, "resourceVersion should not be set on objects to be created"),
        ),
        (
            {"op": "blah", "path": "/data/a"},
            (500, "Internal error occurred: Unexpected kind: blah"),
        ),
        ({"op": "replace", "path": "", "value": []}, (500, "")),
        ({"op": "add", "path": "/data/a b", "value": "x"}, (422, "")),
    ],
)
async def test_a_patch_that_breaks_the_object_is_refused(
    operation: dict[str, Any], expected: tuple[int, str]
) -> None:
    async with webhook_server() as hooks, serving() as server:
        hook = webhook(hooks.on("/m", patching(operation)), failurePolicy="Ignore")
        await configured(server, MUTATING, hook)
        status, message = said(await server.create(MAPS, config_map()))
        assert status == expected[0]
        assert message.startswith(expected[1])
        assert (await server.get(f"{MAPS}/a")).status == 404


async def test_what_only_the_server_may_set_stays_as_it_is() -> None:
    forged: list[dict[str, Any]] = [
        {"op": "add", "path": "/metadata/uid", "value": "mine"},
        {"op": "add", "path": "/bogus", "value": 1},
        {"op": "replace", "path": "/metadata/managedFields", "value": [{"operation": "Blah"}]},
    ]
    rules = [{**CONFIG_MAPS, "operations": ["CREATE", "UPDATE"]}]
    async with webhook_server() as hooks, serving() as server:
        await configured(server, MUTATING, webhook(hooks.on("/m", patching(*forged)), rules=rules))
        made = await server.create(MAPS, config_map())
        assert made.body["metadata"]["uid"] != "mine"
        assert "bogus" not in made.body
        assert "managedFields was in an invalid state after admission" in made.warnings[0]
        assert made.body["metadata"]["managedFields"][0]["manager"] == "test"
        changed = await server.patch(f"{MAPS}/a", {"data": {"c": "d"}})
        assert changed.status == 422
        assert "metadata.uid" in changed.body["message"]


async def test_a_scale_is_shown_and_changed_as_a_scale() -> None:
    rules = [
        {
            **CONFIG_MAPS,
            "apiGroups": ["apps"],
            "resources": ["deployments/scale"],
            "operations": ["UPDATE"],
        }
    ]
    five = patching({"op": "replace", "path": "/spec/replicas", "value": 5})
    labels = {"matchLabels": {"a": "b"}}
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    path = "/apis/apps/v1/namespaces/default/deployments"
    async with webhook_server() as hooks, serving() as server:
        spec = {"selector": labels, "template": template}
        await server.create(path, {"metadata": {"name": "d"}, "spec": spec})
        await configured(server, MUTATING, webhook(hooks.on("/m", five), rules=rules))
        scaled = await server.patch(f"{path}/d/scale", {"spec": {"replicas": 2}})
        assert scaled.body["spec"] == {"replicas": 5}
        request = hooks.reviews("/m")[0]["request"]
        assert (request["kind"]["kind"], request["subResource"]) == ("Scale", "scale")
        assert (await server.get(f"{path}/d")).body["spec"]["replicas"] == 5


async def test_a_deletion_cannot_be_changed() -> None:
    rules = [{**CONFIG_MAPS, "operations": ["DELETE"]}]
    async with webhook_server() as hooks, serving() as server:
        await server.create(MAPS, config_map())
        hook = webhook(hooks.on("/m", patching(added("x"))), rules=rules)
        await configured(server, MUTATING, hook)
        assert said(await server.delete(f"{MAPS}/a")) == (
            500,
            (
                'Internal error occurred: admission webhook "w.example.com" attempted to modify '
                "the object, which is not supported for this operation"
            ),
        )


async def test_a_write_that_met_another_begins_again_with_its_webhooks() -> None:
    rules = [{**CONFIG_MAPS, "operations": ["UPDATE"]}]
    async with webhook_server() as hooks, serving() as server:
        await server.create(MAPS, config_map())
        met = asyncio.Event()

        async def slow(review: Review) -> Review:
            if "slow" in review["request"]["object"]["data"] and not met.is_set():
                met.set()
                await server.patch(f"{MAPS}/a", {"data": {"fast": "1"}})
            return allow(review)

        await configured(server, MUTATING, webhook(hooks.on("/m", slow), rules=rules))
        reply = await server.patch(f"{MAPS}/a", {"data": {"slow": "1"}})
        assert reply.body["data"] == {"a": "b", "fast": "1", "slow": "1"}
        assert len(hooks.asked) == 3


# -- what webhooks say besides ------------------------------------------------------------------


async def test_warnings_and_audit_annotations_are_passed_on() -> None:
    def talkative(review: Review) -> Review:
        return reviewed(review, warnings=["mind", "a\nb", ""], auditAnnotations={"k": "v"})

    async with webhook_server() as hooks, serving() as server:
        await configured(server, VALIDATING, webhook(hooks.on("/v", talkative)))
        assert (await server.create(MAPS, config_map())).warnings == ['299 - "mind"']


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (..., (400, None, "denied the request without explanation")),
        ({"code": 418, "reason": "Teapot"}, (418, "Teapot", "denied the request: Teapot")),
        ({"code": 200, "message": "m"}, (400, None, "denied the request: m")),
        ({"code": 500, "message": "m"}, (500, None, "denied the request: m")),
    ],
)
async def test_a_refusal_is_in_the_webhooks_words(
    status: Any, expected: tuple[int, str | None, str]
) -> None:
    async with webhook_server() as hooks, serving() as server:
        answer: Answer = lambda review: reviewed(review, allowed=False, status=status)  # noqa: E731
        await configured(server, VALIDATING, webhook(hooks.on("/v", answer)))
        reply = await server.create(MAPS, config_map())
        code, reason, message = expected
        assert (reply.status, reply.body.get("reason")) == (code, reason)
        assert reply.body["message"] == f'admission webhook "w.example.com" {message}'


@pytest.mark.parametrize(("effects", "status"), [("None", 201), ("NoneOnDryRun", 201)])
async def test_a_rehearsal_is_asked_about_as_one(effects: str, status: int) -> None:
    async with webhook_server() as hooks, serving() as server:
        await configured(server, VALIDATING, webhook(hooks.on("/v", allow), sideEffects=effects))
        assert (await server.create(f"{MAPS}?dryRun=All", config_map())).status == status
        request = hooks.reviews("/v")[0]["request"]
        assert (request["dryRun"], request["options"]["dryRun"]) == (True, ["All"])


async def test_connections_are_kept() -> None:
    async with webhook_server() as hooks, serving() as server:
        await configured(server, VALIDATING, webhook(hooks.on("/v", allow)))
        for number in range(10):
            assert (await server.create(MAPS, config_map(f"m{number}"))).status == 201
        assert hooks.connections == 1


async def test_a_service_is_reached_through_its_endpoints() -> None:
    services = "/api/v1/namespaces/default/services"
    async with webhook_server() as hooks, serving() as server:
        client = {**hooks.on("/v", deny), "service": {"name": "hook", "namespace": "default"}}
        del client["url"]
        client["service"]["path"] = "/v"
        await configured(server, VALIDATING, webhook(client))
        prefix = 'failed calling webhook "w.example.com": failed to call webhook: Post '
        url = '"https://hook.default.svc:443/v?timeout=10s": '

        async def failure() -> str:
            message: str = (await server.create(MAPS, config_map())).body["message"]
            return message.removeprefix("Internal error occurred: ").removeprefix(prefix + url)

        assert await failure() == 'service "hook" not found'
        ports = [{"name": "web", "port": 443, "targetPort": 8443}]
        await server.create(services, {"metadata": {"name": "hook"}, "spec": {"ports": ports}})
        assert await failure() == 'no endpoints available for service "hook"'
        labels = {"kubernetes.io/service-name": "hook"}
        piece = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "hook-1", "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "web", "port": hooks.port, "protocol": "TCP"}],
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
        }
        # No server lets an endpoint be on its own machine, where the test's webhook is.
        key = ObjectKey("discovery.k8s.io", "endpointslices", PLAIN, "default", "hook-1")
        await server.api.store.commit([Write(key.path(), encode(piece), 0)])
        assert await failure() == 'admission webhook "w.example.com" denied the request: no'


# -- in workspaces ------------------------------------------------------------------------------


async def set_up(hub: Hub, where: str, kind: str, *webhooks: dict[str, Any]) -> Reply:
    made = configuration(*webhooks)
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{where}{kind}", made)
    assert reply.status == 201, reply.body
    return reply


async def outcome(hub: Hub, where: str, path: str, obj: dict[str, Any]) -> tuple[int, str]:
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{where}{path}", obj)
    return reply.status, reply.body.get("message", "")


async def test_a_hub_calls_webhooks_nowhere_unless_networks_are_named(tmp_path: Path) -> None:
    async with webhook_server() as hooks, running_hub(tmp_path) as hub:
        await hub.workspace("root", "one")
        by_url = webhook(hooks.on("/v", allow), "url.example.com")
        warned = await set_up(hub, "root:one", VALIDATING, by_url)
        assert "--webhook-network" in warned.warnings[0]
        status, message = await outcome(hub, "root:one", MAPS, config_map())
        assert status == 500
        assert message.endswith("the hub's administrator allows no webhooks at this address")
        assert hooks.connections == 0


async def test_a_workspaces_webhooks_are_its_own_and_services_are_inert(tmp_path: Path) -> None:
    service = {"service": {"name": "hook", "namespace": "default"}}
    async with (
        webhook_server() as hooks,
        running_hub(tmp_path, webhook_networks=LOOPBACK) as hub,
    ):
        for name in ("one", "two"):
            await hub.workspace("root", name)
        label = {"op": "add", "path": "/metadata/annotations/seen", "value": "yes"}
        warned = await set_up(
            hub,
            "root:one",
            MUTATING,
            webhook(service, "service.example.com"),
            webhook(hooks.on("/m", patching(label)), "url.example.com"),
        )
        assert len(warned.warnings) == 1
        assert "webhooks[0].clientConfig.service: webhooks of workspaces" in warned.warnings[0]
        assert (await outcome(hub, "root:one", MAPS, config_map()))[0] == 201
        assert (await outcome(hub, "root:two", MAPS, config_map()))[0] == 201
        [review] = hooks.reviews("/m")
        cluster = review["request"]["object"]["metadata"]["annotations"]["kcp.io/cluster"]
        made = await hub.get("root:one", f"{MAPS}/a")
        assert made["metadata"]["annotations"] == {"kcp.io/cluster": cluster, "seen": "yes"}


async def test_an_exporters_webhooks_judge_what_is_bound_and_the_workspaces_do_not(
    tmp_path: Path,
) -> None:
    rules = [{**EVERYTHING, "resources": ["widgets"]}]
    async with (
        webhook_server() as hooks,
        running_hub(tmp_path, webhook_networks=LOOPBACK) as hub,
    ):
        for name in ("exporter", "consumer"):
            await hub.workspace("root", name)
        await provider(hub, "root:exporter")
        bound = api_binding("widgets", "root:exporter", "widgets")
        await hub.create("root:consumer", BINDINGS, bound)
        await hub.settled()
        exporters = webhook(hooks.on("/exporter", deny), rules=rules)
        await set_up(hub, "root:exporter", VALIDATING, exporters)
        await set_up(hub, "root:consumer", VALIDATING, webhook(hooks.on("/own", deny), rules=rules))
        assert (await outcome(hub, "root:consumer", WIDGETS, widget("w")))[0] == 400
        assert [len(hooks.reviews(path)) for path in ("/exporter", "/own")] == [1, 0]


async def test_copies_in_a_mailbox_are_not_sent_to_webhooks(tmp_path: Path) -> None:
    async with (
        webhook_server() as hooks,
        running_edge_hub(tmp_path, webhook_networks=LOOPBACK) as hub,
    ):
        edge = await hub.edge()
        for kind in (MUTATING, VALIDATING):
            await set_up(hub, edge.mailbox, kind, webhook(hooks.on("/v", deny), rules=[EVERYTHING]))
        maps = "/api/v1/namespaces/shop/configmaps"
        await edge.place(maps, config_map("copy"))
        assert not hooks.asked
        assert (await outcome(hub, edge.mailbox, maps, config_map("own")))[0] == 400


# -- webhooks that are broken or lie -------------------------------------------------------------


async def never(_: Review) -> Review:
    await asyncio.get_running_loop().create_future()
    return {}


async def test_a_webhook_that_hangs_costs_its_own_requests_their_time_only() -> None:
    async with webhook_server() as hooks, serving() as server:
        hook = webhook(
            hooks.on("/hang", never), timeoutSeconds=1, objectSelector={"matchLabels": {"a": "b"}}
        )
        await configured(server, VALIDATING, hook)
        slow = asyncio.ensure_future(
            server.create(MAPS, {"metadata": {"name": "slow", "labels": {"a": "b"}}})
        )
        while not hooks.asked:
            await asyncio.sleep(0)
        assert (await server.create(MAPS, config_map())).status == 201
        assert not slow.done()
        status, message = said(await slow)
        assert status == 500
        assert message.endswith('/hang?timeout=1s": context deadline exceeded')


async def test_the_time_a_client_gives_ends_all_its_webhooks() -> None:
    async with webhook_server() as hooks, serving() as server:
        hook = webhook(hooks.on("/hang", never), failurePolicy="Ignore")
        await configured(server, VALIDATING, hook)
        reply = await server.create(f"{MAPS}?timeout=100ms", config_map())
        assert (reply.status, reply.body["reason"]) == (504, "Timeout")


async def test_a_failure_that_may_be_ignored_is() -> None:
    async with webhook_server() as hooks, serving() as server:
        nowhere = {"url": "https://127.0.0.1:1/x"}
        await configured(server, MUTATING, webhook(nowhere, failurePolicy="Ignore"))
        await configured(server, VALIDATING, webhook(nowhere, failurePolicy="Ignore"))
        assert (await server.create(MAPS, config_map())).status == 201
        assert not hooks.asked
