"""Bindings, evictions and connections before clients' rules; as kube-apiserver 1.32 has them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from skerry.server.admission.requests import _options
from skerry.server.http.message import Answer, Request, Response
from skerry.server.request.call import Call
from tests.kit.machinery.objects import resource
from tests.kit.machinery.policies import binding, policy
from tests.kit.server.calls import call_of
from tests.kit.server.harness import Server, serving
from tests.kit.server.webhooks import (
    WebhookServer,
    allow,
    configuration,
    deny,
    patching,
    webhook,
    webhook_server,
)

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
SAYS = (
    "request.operation + ' ' + request.kind.kind + ' ' + request.subResource + ' ' + request.name "
    "+ ' ' + (has(object.container) ? object.container : '-')"
)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as made:
        account = {"metadata": {"name": "default"}}
        await made.create("/api/v1/namespaces/default/serviceaccounts", account)
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
        for name, more in (("bound", {"nodeName": "n"}), ("free", {})):
            reply = await made.create(PODS, {"metadata": {"name": name}, "spec": {**spec, **more}})
            assert reply.status == 201, reply.body
        yield made


def rules(operation: str, *resources: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": [operation]}
    return {"resourceRules": [{**rule, "resources": list(resources)}]}


async def forbid(server: Server, constraints: Any, says: str = SAYS) -> None:
    made = policy("p", "false", matchConstraints=constraints)
    made["spec"]["validations"][0]["messageExpression"] = says
    for kind, obj in (("policies", made), ("policybindings", binding())):
        reply = await server.create(f"{ADMISSION}/validatingadmission{kind}", obj)
        assert reply.status == 201, reply.body


def shown(says: str, name: str = "bound", kind: str = "pods") -> tuple[int, str]:
    about = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request"
    return 422, f'{kind} "{name}" is forbidden: {about}: {says}'


async def asked(server: Server, method: str, path: str, body: Any = None) -> tuple[int, str]:
    reply = await server.request(method, path, body)
    return reply.status, (reply.body or {}).get("message", "")


async def test_connections_are_judged_by_what_they_are_to_do(server: Server) -> None:
    await forbid(server, rules("CONNECT", "pods/exec", "pods/attach", "pods/proxy"))
    path = f"{PODS}/bound"
    assert await asked(server, "POST", f"{path}/exec?container=c&command=ls&stdin=true") == shown(
        "CONNECT PodExecOptions exec bound c"
    )
    assert await asked(server, "GET", f"{path}/attach?container=c") == shown(
        "CONNECT PodAttachOptions attach bound c"
    )
    assert await asked(server, "GET", f"{path}/proxy/x") == shown(
        "CONNECT PodProxyOptions proxy bound -"
    )
    status, message = await asked(server, "GET", f"{path}/log")
    assert "denied" not in message, "logs are read, and no connection"
    assert status == 503


async def test_a_binding_and_an_eviction_are_judged_as_they_were_asked_for(server: Server) -> None:
    says = "request.operation + ' ' + request.kind.kind + ' ' + request.name"
    await forbid(server, rules("*", "pods/binding", "pods/eviction"), says)
    body = {"metadata": {"name": "free"}, "target": {"kind": "Node", "name": "n"}}
    path = f"{PODS}/free/binding"
    assert await asked(server, "POST", path, body) == shown("CREATE Binding free", "free")
    eviction = {"metadata": {"name": "bound"}}
    answer = await asked(server, "POST", f"{PODS}/bound/eviction", eviction)
    assert answer == shown("CREATE Eviction bound")
    # The collection is a resource of its own, which nobody forbids.
    bindings = "/api/v1/namespaces/default/bindings"
    assert (await asked(server, "POST", bindings, body))[0] == 201


async def test_the_collection_of_bindings_is_judged_by_its_own_name(server: Server) -> None:
    await forbid(server, rules("CREATE", "bindings"), "request.kind.kind")
    body = {"metadata": {"name": "free"}, "target": {"kind": "Node", "name": "n"}}
    answer = await asked(server, "POST", "/api/v1/namespaces/default/bindings", body)
    assert answer == shown("Binding", "free", "bindings")
    assert (await asked(server, "POST", f"{PODS}/free/binding", body))[0] == 201


async def test_validating_webhooks_are_shown_what_was_asked_for(server: Server) -> None:
    async with webhook_server() as hooks:
        rule = rules("*", "pods/exec", "pods/binding", "pods/eviction")["resourceRules"]
        hook = webhook(hooks.on("/deny", deny), rules=rule)
        path = f"{ADMISSION}/validatingwebhookconfigurations"
        assert (await server.create(path, configuration(hook))).status == 201
        status, message = await asked(server, "POST", f"{PODS}/bound/exec?command=a&command=b")
        assert (status, message) == (
            400,
            'admission webhook "w.example.com" denied the request: no',
        )
        (review,) = hooks.reviews("/deny")
        request = review["request"]
        assert (request["operation"], request["subResource"]) == ("CONNECT", "exec")
        assert request["object"]["command"] == ["a", "b"]
        assert request.get("options") is None
        hooks.on("/deny", allow)
        body = {"metadata": {"name": "free"}, "target": {"kind": "Node", "name": "n"}}
        assert (await asked(server, "POST", f"{PODS}/free/binding", body))[0] == 201
        request = hooks.reviews("/deny")[-1]["request"]
        assert len(hooks.reviews("/deny")) == 2, "how it is carried out is not shown"
        assert (request["operation"], request["object"]["kind"]) == ("CREATE", "Binding")
        assert request["object"]["target"]["name"] == "n"


_UNREADABLE = "json: cannot unmarshal number into Go struct field"


class Agent:
    """A node's agent that only notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    async def connect(self, call: Call, pod: dict[str, Any] | None, container: str) -> Answer:
        self.asked.append((container, call.request.query_string, call.info.rest))
        return Response(body=b"{}")


@contextlib.asynccontextmanager
async def mutating(server: Server) -> AsyncIterator[WebhookServer]:
    """Have what stores nothing shown at ``/m`` to a mutating webhook, at ``/v`` to another."""
    asked = ("exec", "attach", "portforward", "proxy", "binding", "eviction")
    rule = rules("*", "bindings", "pods", *(f"pods/{name}" for name in asked))["resourceRules"]
    async with webhook_server() as hooks:
        for kind, path in (("mutating", "/m"), ("validating", "/v")):
            made = configuration(webhook(hooks.on(path, allow), rules=rule))
            reply = await server.create(f"{ADMISSION}/{kind}webhookconfigurations", made)
            assert reply.status == 201, reply.body
        yield hooks


def replacing(path: str, value: Any) -> Any:
    return patching({"op": "add", "path": path, "value": value})


@pytest.mark.parametrize(
    ("path", "patch", "reached"),
    [
        ("exec?container=c&command=ls", ("/command", ["a b", "c"]), "command=a+b&command=c"),
        ("exec?command=ls&stdin=true", ("/stdin", False), "command=ls"),
        ("attach?tty=1&other=kept", ("/stdout", True), "other=kept&stdout=true&tty=true"),
        ("portforward?ports=80", ("/ports", [81, 82]), "ports=81&ports=82"),
        ("proxy/x/y?a=b", ("/path", "/z"), "a=b z"),
        ("proxy/x/y?a=b", ("/unknown", "/z"), "a=b x/y"),
    ],
)
async def test_what_a_webhook_makes_of_a_connection_is_connected_to(
    server: Server, path: str, patch: tuple[str, Any], reached: str
) -> None:
    agent = Agent()
    server.api.connections.register("local", "n", agent)
    async with mutating(server) as hooks:
        hooks.on("/m", replacing(*patch))
        reply = await server.request("POST", f"{PODS}/bound/{path}")
        assert reply.status == 200, reply.body
        (_, query, rest) = agent.asked[0]
        pairs = sorted(part for part in query.split("&") if not part.startswith("container="))
        assert " ".join(filter(None, ("&".join(pairs), rest))) == reached
        (shown,) = (review["request"]["object"] for review in hooks.reviews("/v"))
        assert "metadata" not in shown, "options are no object"


@pytest.mark.parametrize(
    ("patch", "status", "message"),
    [
        (("/container", "zz"), 400, "container zz is not valid for pod bound"),
        (("/kind", "Pod"), 500, "converting (v1.Pod) to (core.PodExecOptions): unknown conversion"),
        (
            ("/container", 5),
            500,
            f"Internal error occurred: {_UNREADABLE} PodExecOptions.container of type string",
        ),
    ],
)
async def test_what_a_webhook_makes_of_a_connection_must_be_one(
    server: Server, patch: tuple[str, Any], status: int, message: str
) -> None:
    async with mutating(server) as hooks:
        hooks.on("/m", replacing(*patch))
        found = await asked(server, "POST", f"{PODS}/bound/exec?command=ls")
        assert found == (status, message)


async def test_a_webhook_may_choose_another_node_for_a_pod(server: Server) -> None:
    async with mutating(server) as hooks:
        node = {"op": "replace", "path": "/target/name", "value": "other"}
        note = {"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}}
        hooks.on("/m", patching(node, note))
        body = {"metadata": {"name": "free"}, "target": {"kind": "Node", "name": "n"}}
        reply = await server.create(f"{PODS}/free/binding", body)
        assert (reply.status, reply.body["code"]) == (201, 201)
        pod = (await server.get(f"{PODS}/free")).body
        assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"]) == ("other", {"x": "y"})
        shown = [review["request"]["object"] for _, review in hooks.asked]
        assert [each["target"]["name"] for each in shown] == ["n", "other"]
        assert shown[0]["metadata"] == {
            "creationTimestamp": None,
            "name": "free",
            "namespace": "default",
        }


async def test_a_webhook_is_asked_before_a_binding_is_looked_at(server: Server) -> None:
    async with mutating(server) as hooks:
        body = {"metadata": {"name": "other"}, "target": {"name": "n"}}
        why = "name in URL does not match name in Binding object"
        assert await asked(server, "POST", f"{PODS}/free/binding", body) == (400, why)
        (review,) = (review["request"] for _, review in hooks.asked)
        assert (review["name"], review["object"]["metadata"]["name"]) == ("free", "other")


async def test_a_webhook_may_change_how_a_pod_is_evicted(server: Server) -> None:
    path = f"{PODS}/bound/eviction"
    body = {"metadata": {"name": "bound"}}
    async with mutating(server) as hooks:
        hooks.on("/m", replacing("/deleteOptions", {"dryRun": ["All"]}))
        assert (await asked(server, "POST", path, body))[0] == 201
        hooks.on("/m", replacing("/deleteOptions", {"gracePeriodSeconds": 7}))
        assert (await asked(server, "POST", path, body))[0] == 201
        pod = (await server.get(f"{PODS}/bound")).body
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 7
        # As in Kubernetes, an eviction is judged as one, and its deletion not once more.
        verbs = [review["request"]["operation"] for _, review in hooks.asked]
        assert verbs == ["CREATE"] * 4
        answer = await asked(server, "POST", f"{PODS}/none/eviction", {"metadata": {}})
        assert answer == (404, 'pods "none" not found')
        assert len(hooks.asked) == 6, "asked before it is known whether there is such a pod"


async def test_ports_that_are_no_numbers_are_left_out_of_what_is_judged() -> None:
    query = "ports=80&ports=%C2%B2&ports=" + "9" * 5000
    call = call_of(
        resource("pods"), request=Request("GET", "/", query), subresource="portforward", name="p"
    )
    assert _options(call) == {"ports": [80]}
