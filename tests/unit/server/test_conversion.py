"""Custom objects at two versions between which a webhook converts.

Each sentence was compared with what kube-apiserver 1.32 says of the same webhook.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.conversions import DEFINITIONS, V1, V2, Spoil, car, cars, converting
from tests.kit.server.harness import Server, serving
from tests.kit.server.hub import running_hub
from tests.kit.server.webhooks import WebhookServer, allow, configuration, webhook, webhook_server

MERGE = "application/merge-patch+json"


async def defined(server: Server, hooks: WebhookServer, spoil: Spoil | None = None) -> None:
    reply = await server.create(DEFINITIONS, cars(hooks.on("/c", converting(spoil))))
    assert (reply.status, reply.warnings) == (201, []), reply.body


async def test_objects_are_read_and_written_at_every_version() -> None:
    async with webhook_server() as hooks, serving() as server:
        await defined(server, hooks)
        made = await server.create(V2, car("v2", "a", name="h", port="80"))
        assert (made.status, made.body["spec"]) == (201, {"name": "h", "port": "80"})
        assert (await server.get(f"{V1}/a")).body["spec"] == {"host": "h:80"}
        changed = await server.patch(f"{V2}/a", {"spec": {"port": "81"}})
        assert changed.body["spec"] == {"name": "h", "port": "81"}
        assert (await server.get(f"{V1}/a")).body["spec"] == {"host": "h:81"}
        assert (await server.get(f"{V2}/a/status")).body["apiVersion"] == "ex.io/v2"
        assert (await server.delete(f"{V2}/a")).status == 200


async def test_what_is_stored_is_read_without_asking() -> None:
    async with webhook_server() as hooks, serving() as server:
        await defined(server, hooks)
        await server.create(V1, car("v1", "a", host="h:80"))
        await server.get(f"{V1}/a")
        await server.get(V1)
        accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        await server.get(V2, headers={"accept": accept})
        assert not hooks.asked


async def test_a_list_is_converted_at_once() -> None:
    async with webhook_server() as hooks, serving() as server:
        await defined(server, hooks)
        for number in range(3):
            await server.create(V1, car("v1", f"c{number}", host=f"h{number}:80"))
        listed = (await server.get(V2)).body["items"]
        assert [each["spec"]["name"] for each in listed] == ["h0", "h1", "h2"]
        [review] = hooks.reviews("/c")
        assert review["kind"] == "ConversionReview"
        assert review["request"]["desiredAPIVersion"] == "ex.io/v2"
        assert [each["metadata"]["name"] for each in review["request"]["objects"]] == [
            "c0",
            "c1",
            "c2",
        ]


async def test_field_managers_at_two_versions_own_the_same_field() -> None:
    async with webhook_server() as hooks, serving() as server:
        await defined(server, hooks)
        applied = car("v2", "a", name="h", port="80")
        await server.patch(f"{V2}/a?fieldManager=one", applied, "apply")
        other = car("v1", "a", host="other:80")
        refused = await server.patch(f"{V1}/a?fieldManager=two", other, "apply")
        assert refused.status == 409
        assert 'conflict with "one"' in refused.body["message"]
        forced = await server.patch(f"{V1}/a?fieldManager=two&force=true", other, "apply")
        assert forced.body["spec"] == {"host": "other:80"}


async def test_admission_sees_the_version_it_asks_for() -> None:
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["ex.io"],
        "apiVersions": ["v2"],
        "resources": ["cars"],
    }
    kind = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    async with webhook_server() as hooks, serving() as server:
        await defined(server, hooks)
        hook = webhook(hooks.on("/v", allow), rules=[rule])
        await server.create(kind, configuration(hook))
        await server.create(V1, car("v1", "a", host="h:80"))
        [review] = hooks.reviews("/v")
        assert review["request"]["object"]["spec"] == {"name": "h", "port": "80"}


def result(**said: str) -> Spoil:
    def spoil(response: dict[str, Any], _: list[Any]) -> None:
        response["result"] = said

    return spoil


def first(**members: Any) -> Spoil:
    return lambda _, objects: objects[0].update(members)


def metadata(**members: Any) -> Spoil:
    return lambda _, objects: objects[0]["metadata"].update(members)


FOR = "conversion webhook for ex.io/v1, Kind=Car"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (result(status="Failed", message="no"), f"{FOR} failed: no"),
        (
            result(status="Failed"),
            f"{FOR} failed: response.result.status was 'Failed', not 'Success'",
        ),
        (lambda _, objects: objects.clear(), f"{FOR} returned 0 objects, expected 1"),
        (
            first(apiVersion="ex.io/v9"),
            (
                f"{FOR} returned invalid object at index 0: invalid groupVersion (expected "
                "ex.io/v2, received ex.io/v9)"
            ),
        ),
        (
            first(kind="Other"),
            (
                f"{FOR} returned invalid object at index 0: invalid kind (expected Car, received "
                "Other)"
            ),
        ),
        (
            metadata(name="other"),
            f"{FOR} returned invalid object: must have the same name: a != other",
        ),
        (
            metadata(namespace="other"),
            f"{FOR} returned invalid object: must have the same namespace: default != other",
        ),
        (metadata(labels={"l x": "y"}), f"{FOR} returned invalid metadata: metadata.labels: "),
        (metadata(labels={"l": 1}), f"{FOR} returned invalid metadata: metadata.labels: "),
        (
            lambda response, _: response.update(convertedObjects=["x"]),
            "json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (lambda response, _: response.update(uid="x"), f"{FOR} failed: expected response.uid="),
        (lambda *_: b"", f"{FOR} failed: Post "),
        (lambda *_: {"kind": "Pod"}, f'{FOR} failed: no kind "Pod" is registered for version '),
        (lambda *_: {"kind": "ConversionReview"}, f"{FOR} failed: no response provided"),
        (lambda *_: [], f"{FOR} failed: couldn't get version/kind; json parse error"),
    ],
)
async def test_an_answer_that_is_no_conversion_is_a_failure(spoil: Spoil, message: str) -> None:
    async with webhook_server() as hooks, serving() as server:
        await defined(server, hooks, spoil)
        await server.create(V1, car("v1", "a", host="h:80"))
        reply = await server.get(f"{V2}/a")
        assert (reply.status, reply.body.get("reason")) == (500, None)
        assert reply.body["message"].startswith(message)
        # Whoever can do without the webhook is not hindered by it.
        assert (await server.get(f"{V1}/a")).status == 200
        assert (await server.delete(f"{V2}/a")).status == 200


async def test_only_labels_and_annotations_of_the_metadata_may_change() -> None:
    spoil = metadata(labels={"l": "x"}, generation=77, finalizers=["a/b"])
    async with webhook_server() as hooks, serving() as server:
        await defined(server, hooks, spoil)
        await server.create(V1, car("v1", "a", host="h:80"))
        found = (await server.get(f"{V2}/a")).body["metadata"]
        assert (found["labels"], found["generation"]) == ({"l": "x"}, 1)
        assert "finalizers" not in found


async def test_a_workspaces_conversion_webhook_is_called_where_the_hub_may_go(
    tmp_path: Path,
) -> None:
    service = {"service": {"name": "s", "namespace": "default"}}
    async with webhook_server() as hooks, running_hub(tmp_path) as hub:
        for name, client in (("url", hooks.on("/c", converting())), ("service", service)):
            await hub.workspace("root", name)
            await hub.create(f"root:{name}", DEFINITIONS, cars(client))
            await hub.create(f"root:{name}", V1, car("v1", "a", host="h:80"))
        said = [
            (await hub.ask("kcp-admin", "GET", f"/clusters/root:{name}{V2}/a")).body["message"]
            for name in ("url", "service")
        ]
        assert said[0].endswith("the hub's administrator allows no webhooks at this address")
        assert said[1].endswith("webhooks of workspaces are not called through Services")
        assert not hooks.connections


# -- objects that were stored under an older definition ----------------------------------------


async def test_defaults_that_came_later_are_filled_in_on_reading() -> None:
    plain: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    filling = {"type": "object", "properties": {"a": {"type": "string", "default": "A"}}}
    async with serving() as server:
        await server.create(DEFINITIONS, cars(None, "v1", **plain))
        await server.create(V1, car("v1", "old"))
        for version in range(2):
            path = f"/spec/versions/{version}/schema/openAPIV3Schema/properties/spec"
            patch = [{"op": "replace", "path": path, "value": filling}]
            reply = await server.patch(f"{DEFINITIONS}/cars.ex.io", patch, "json")
            assert reply.status == 200, reply.body
        assert (await server.get(f"{V1}/old")).body["spec"] == {"a": "A"}
        assert (await server.get(V1)).body["items"][0]["spec"] == {"a": "A"}
        async with server.watch(f"{V1}?watch=1&resourceVersion=0") as watch:
            assert (await watch.lines.get())["object"]["spec"] == {"a": "A"}
        # The old object of an update has them too: nothing changes.
        before = (await server.get(f"{V1}/old")).body["metadata"]
        same = await server.patch(f"{V1}/old", {"spec": {"a": "A"}})
        assert same.body["metadata"]["generation"] == before["generation"]


async def test_objects_stored_at_the_former_version_are_served_at_the_new_one() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, cars(None))
        await server.create(V1, car("v1", "old"))
        flip = [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ]
        changed = await server.patch(f"{DEFINITIONS}/cars.ex.io", flip, "json")
        assert changed.body["status"]["storedVersions"] == ["v1", "v2"]
        assert (await server.get(f"{V2}/old")).body["apiVersion"] == "ex.io/v2"
        assert (await server.get(V2)).body["items"][0]["apiVersion"] == "ex.io/v2"
        assert (await server.get(f"{V1}/old")).body["apiVersion"] == "ex.io/v1"
