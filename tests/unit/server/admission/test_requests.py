"""Bindings, evictions and connections before clients' rules; as kube-apiserver 1.32 has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.kit.machinery.policies import binding, policy
from tests.kit.server.harness import Server, serving
from tests.kit.server.webhooks import allow, configuration, deny, webhook, webhook_server

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
