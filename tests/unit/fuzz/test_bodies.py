"""Whatever a body holds, a write takes steps in proportion to it and is never a failure of ours.

A body is an object or a patch, bent by Hypothesis as in ``tests.kit.server.requests``. Then one of
its lists or maps is blown up, to n and to 2n members that are all alike or all different, and both
are sent through the whole engine as rehearsals: at most twice the steps, and a few for the
request itself.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.server.harness import Reply, Server, serving
from tests.kit.server.objects import (
    NAMESPACE,
    POPULATION,
    config_map,
    definition,
    deployment,
    pod,
    service,
    thing,
)
from tests.kit.server.requests import mutated
from tests.kit.sim.loop import run_virtual

CORE = f"/api/v1/namespaces/{NAMESPACE}"
SIZE = 40
# Whatever is asked, the server answers: never with a failure of its own.
_UNDERSTOOD = range(200, 500)

RICH_POD = pod(
    "rich",
    initContainers=[{"name": "i", "image": "i", "command": ["a"], "args": ["b"]}],
    volumes=[{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}],
    tolerations=[{"key": "k", "operator": "Exists"}],
    nodeSelector={"a": "b"},
    imagePullSecrets=[{"name": "s"}],
    hostAliases=[{"ip": "1.2.3.4", "hostnames": ["h"]}],
    schedulingGates=[{"name": "g"}],
    topologySpreadConstraints=[
        {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                ]
            }
        }
    },
)
RICH_POD["spec"]["containers"][0].update(
    env=[{"name": "N", "value": "v"}],
    envFrom=[{"configMapRef": {"name": "c"}}],
    ports=[{"containerPort": 80, "name": "p"}],
    volumeMounts=[{"name": "v", "mountPath": "/m"}],
    volumeDevices=[{"name": "d", "devicePath": "/d"}],
    resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1"}, "claims": [{"name": "c"}]},
)
META: dict[str, Any] = {
    "finalizers": ["a.b/c"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}],
    "annotations": {"a": "b"},
    "labels": {"a": "b"},
    "managedFields": [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:k": {}}},
        }
    ],
}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "r"},
    "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}],
}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q"},
    "spec": {
        "hard": {"pods": "1"},
        "scopes": ["BestEffort"],
        "scopeSelector": {
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]
        },
    },
}  # fmt: skip
GATHERING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "g"},
    "rules": [],
    "aggregationRule": {
        "clusterRoleSelectors": [
            {
                "matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
            }
        ]
    },
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "b"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
    "subjects": [{"kind": "User", "name": "ann"}],
}
CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "c"},
    "spec": {"schedule": "0,1 * * * *", "jobTemplate": {"spec": {"template": RICH_POD}}},
}
# Where each is sent, and what it looks like before it is bent.
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    (f"{CORE}/configmaps", {**config_map("b", k="v"), "metadata": {"name": "b", **META}}),
    (f"{CORE}/pods", RICH_POD),
    (f"{CORE}/services", service("b", externalIPs=["1.2.3.4"])),
    (f"{CORE}/resourcequotas", QUOTA),
    (f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", deployment("b")),
    (f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs", CRON_JOB),
    (f"/apis/example.org/v1/namespaces/{NAMESPACE}/things", thing("b", size=3, x={"a": [1]})),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", ROLE),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", GATHERING),
    ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("gadgets", "Gadget")),
]  # fmt: skip
PATCHES: list[tuple[str, str, Any]] = [
    ("merge", f"{CORE}/configmaps/a", {"data": {"k": "w", "x": None}, "metadata": META}),
    ("strategic", f"{CORE}/pods/a", {"spec": {"containers": [{"name": "main", "image": "i"}]}}),
    (
        "strategic",
        f"{CORE}/services/a",
        {
            "spec": {
                "ports": [{"port": 80, "$patch": "delete"}],
                "$setElementOrder/ports": [{"port": 80}],
            }
        },
    ),
    ("json", f"{CORE}/configmaps/a", [{"op": "add", "path": "/data/z", "value": "v"}]),
    ("json", f"{CORE}/configmaps/a", [{"op": "copy", "from": "/data", "path": "/data/z"}]),
    ("apply", f"{CORE}/configmaps/a?fieldManager=m&force=true", config_map("a", k="w")),
    ("apply", f"{CORE}/pods/b?fieldManager=m", RICH_POD | {"metadata": {"name": "b"}}),
]  # fmt: skip


class Count:
    """Steps of this thread."""

    def __init__(self) -> None:
        self.steps = 0

    def trace(self, _frame: FrameType, event: str, _argument: object) -> Any:
        self.steps += event in ("call", "line")
        return self.trace

    def profile(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.steps += event == "c_call"


@contextmanager
def counted() -> Iterator[Count]:
    """Count the steps of everything that runs inside, other tasks of the loop included."""
    count, before = Count(), (sys.gettrace(), sys.getprofile())
    sys.settrace(count.trace)
    sys.setprofile(count.profile)
    # The frame that asks is running already, and is not traced.
    try:
        yield count
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


def containers(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to every list and map in *value* that is not empty."""
    if not isinstance(value, dict | list) or not value:
        return []
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return [way, *(found for key, inner in pairs for found in containers(inner, (*way, key)))]


def blown_up(value: Any, way: tuple[Any, ...], size: int, alike: bool) -> Any:
    """Return *value* with *size* members where *way* leads."""
    made = copy.deepcopy(value)
    node = made
    for step in way:
        node = node[step]
    if isinstance(node, list):
        node[:] = [_numbered(node[i % len(node)], 0 if alike else i) for i in range(size)]
    else:
        key, member = next(iter(node.items()))
        node.update({f"{key}{i}": _numbered(member, 0 if alike else i) for i in range(size)})
    return made


def _numbered(value: Any, number: int) -> Any:
    """Return *value* distinguished from others by a number, wherever it has text or numbers."""
    if isinstance(value, str) and value:
        return f"{value}{number}"
    if isinstance(value, int) and not isinstance(value, bool):
        return value + number if abs(value) < 2**62 else value
    if isinstance(value, dict):
        return {key: _numbered(member, number) for key, member in value.items()}
    return value


async def populated(server: Server) -> None:
    for (group, version, resource), obj in POPULATION:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        if resource != "customresourcedefinitions":
            path += f"/namespaces/{NAMESPACE}"
        await server.create(f"{path}/{resource}", obj)


Send = Callable[[Server, Any], Awaitable[Reply]]


async def assert_linear(send: Send, document: Any, way: tuple[Any, ...], alike: bool) -> None:
    async with serving() as server:
        await populated(server)
        counts = []
        sizes = (SIZE - 1, SIZE, 2 * SIZE)
        first, small, large = (blown_up(document, way, size, alike) for size in sizes)
        # What is compiled on first use is no part of the growth, nor is what is known of an equal
        # body.
        await send(server, first)
        for body in (small, large):
            with counted() as count:
                reply = await send(server, body)
            assert reply.status in _UNDERSTOOD, reply.body
            counts.append(count.steps)
        # Twice as many for what was doubled, and what a turn of the loop may add.
        assert counts[1] <= 2.3 * counts[0] + 3000, (way, alike, counts)


def rehearsal(path: str) -> str:
    return path + ("&" if "?" in path else "?") + "dryRun=All"


FUZZ = settings(
    max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@FUZZ
@given(st.data())
def test_objects_of_any_form_take_steps_in_proportion(data: st.DataObject) -> None:
    path, template = data.draw(st.sampled_from(OBJECTS))
    document = data.draw(mutated(template))
    ways = containers(document)
    if not ways or not isinstance(document, dict):
        return
    way, alike = data.draw(st.sampled_from(ways)), data.draw(st.booleans())
    form = data.draw(st.sampled_from(["application/json", "application/yaml"]))

    async def send(server: Server, body: Any) -> Reply:
        raw = json.dumps(body).encode()
        if form == "application/yaml":
            raw = yaml.dump(body, Dumper=yaml.CSafeDumper).encode("utf-8", "surrogatepass")
        return await server.create(rehearsal(path), raw, content_type=form)

    run_virtual(assert_linear(send, document, way, alike))


@FUZZ
@given(st.data())
def test_patches_of_any_form_take_steps_in_proportion(data: st.DataObject) -> None:
    kind, path, template = data.draw(st.sampled_from(PATCHES))
    document = data.draw(mutated(template))
    ways = containers(document)
    if not ways:
        return
    way, alike = data.draw(st.sampled_from(ways)), data.draw(st.booleans())

    async def send(server: Server, body: Any) -> Reply:
        return await server.patch(rehearsal(path), json.dumps(body).encode(), kind)

    run_virtual(assert_linear(send, document, way, alike))


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("index", range(len(OBJECTS)))
def test_every_list_of_a_corpus_takes_steps_in_proportion(index: int, alike: bool) -> None:
    """The same without chance: every list and map of every object once."""
    path, document = OBJECTS[index]

    async def all_of_them() -> None:
        async with serving() as server:
            await populated(server)
            for way in containers(document):
                sizes = (SIZE // 4 - 1, SIZE // 4, SIZE // 2)
                first, small, large = (blown_up(document, way, n, alike) for n in sizes)
                counts = []
                await server.create(rehearsal(path), first)
                for body in (small, large):
                    with counted() as count:
                        reply = await server.create(rehearsal(path), body)
                    assert reply.status in _UNDERSTOOD, (way, reply.body)
                    counts.append(count.steps)
                assert counts[1] <= 2.3 * counts[0] + 3000, (way, counts)

    run_virtual(all_of_them())


def understood(reply: Reply) -> bool:
    """Whether *reply* takes or refuses; a field that no schema has is refused with a 500."""
    undeclared = "failed to create typed patch object"
    return reply.status in _UNDERSTOOD or reply.body["message"].startswith(undeclared)


@FUZZ
@given(st.sampled_from([{}, [], [{}], {"a": []}, 1, "x", None]), st.integers(1, 199))
def test_values_of_any_depth_are_taken_or_refused(inner: Any, depth: int) -> None:
    """Nesting is no failure anywhere: in custom objects, patches, applied configurations."""
    value: Any = inner
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    things = f"/apis/example.org/v1/namespaces/{NAMESPACE}/things"
    add = [{"op": "add", "path": "/x", "value": value}]

    async def all_ways() -> None:
        async with serving() as server:
            await populated(server)
            for body in (thing("d", x=value), config_map("d") | {"data": value}):
                replies = [
                    await server.create(f"{things}?dryRun=All", body),
                    await server.patch(f"{things}/a", {"spec": {"x": value}}),
                    await server.patch(f"{things}/a", add, "json"),
                    await server.patch(f"{things}/a?fieldManager=m", body, "apply"),
                    await server.patch(f"{CORE}/configmaps/a", {"data": value}, "strategic"),
                    await server.create(f"{CORE}/configmaps", body),
                ]  # fmt: skip
                assert all(map(understood, replies)), replies

    run_virtual(all_ways())
