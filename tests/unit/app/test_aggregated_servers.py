"""A plain server that passes requests on to another one, over real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from cryptography import x509

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.core_controllers import embedded_transport
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, Running, serving
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.logic.machinery.conditions import find_condition
from skerry.runtime.client import Client
from skerry.server.http.message import Answer, Request, Response, Sender, Stream, Upgrade
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings
from skerry.server.security.pki import Authority, Credential, Pki, new_ca
from skerry.server.streaming.websocket import as_duplex
from tests.kit.server.certificates import client_context, server_context

API_SERVICES = GroupVersionResource("apiregistration.k8s.io", "v1", "apiservices")
SERVICES = GroupVersionResource("", "v1", "services")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
PANDAS = GroupVersionResource("zoo.example.com", "v1", "pandas")
RESOURCES = {
    "kind": "APIResourceList",
    "groupVersion": "zoo.example.com/v1",
    "resources": [
        {"name": "pandas", "namespaced": True, "kind": "Panda", "verbs": ["get", "list"]},
        {"name": "pandas/status", "namespaced": True, "kind": "Panda", "verbs": ["get"]},
    ],
}
PANDA = "com.example.zoo.v1.Panda"
SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "zoo", "version": "1"},
    "paths": {
        "/apis/zoo.example.com/v1/pandas": {
            "get": {
                "responses": {
                    "200": {"description": "OK", "schema": {"$ref": f"#/definitions/{PANDA}"}}
                }
            }
        },
        "/apis/apps/v1/deployments": {"get": {"responses": {}}},
        "/version/": {"get": {"responses": {}}},
    },
    "definitions": {
        PANDA: {"type": "object", "properties": {"eats": {"$ref": "#/definitions/Bamboo"}}},
        "Bamboo": {"type": "string"},
        "Unused": {"type": "string"},
    },
}


@dataclass
class Zoo:
    """The other server: it answers discovery, lists, watches and upgrades."""

    port: int = 0
    ca: bytes = b""
    asked: list[Request] = field(default_factory=list)
    going: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        if request.path == "/apis/zoo.example.com/v1":
            return Response(body=orjson.dumps(RESOURCES))
        if request.path == "/openapi/v2":
            return Response(body=orjson.dumps(SWAGGER))
        if request.path.endswith("/stream"):
            return Upgrade(self.echo, 101, "", (("X-Zoo", "yes"),), protocol="zoo/1")
        if "watch" in request.query:
            return Stream(self.events)
        if request.path.endswith("/large"):
            return Response(body=b"x" * (3 << 20), content_type="text/plain")
        return Response(201, orjson.dumps({"kind": "PandaList", "items": []}), headers=[("A", "b")])

    async def events(self, sender: Sender) -> None:
        sender.write(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n')
        await self.going.wait()
        sender.write(b'{"type":"DELETED","object":{"metadata":{"name":"a"}}}\n')

    async def echo(self, sender: Sender) -> None:
        duplex = as_duplex(sender)
        while piece := await duplex.read():
            duplex.write(piece.upper())
            await duplex.drain()


@contextlib.asynccontextmanager
async def zoo() -> AsyncIterator[Zoo]:
    made = Zoo()
    clock = SystemClock()
    ca = new_ca("zoo-ca", clock)
    shown = Authority(ca, clock).server("zoo", ["zoo.default.svc"])
    pki = Pki(Path(), ca, shown, shown, ca.certificate, ())
    http = HttpServer(made.answer, HttpSettings())
    context = server_context(pki)
    context.verify_mode = 0  # type: ignore[assignment]
    made.port, made.ca = await http.start(tls=context), ca.certificate
    try:
        yield made
    finally:
        await http.stop(0)


@dataclass
class Plain:
    running: Running
    client: Client
    admin: Credential
    ca: bytes

    async def register(self, found: Zoo, **spec: Any) -> None:
        outside = {"type": "ExternalName", "externalName": "localhost"}
        service = {"metadata": {"name": "zoo"}, "spec": outside}
        await self.client.create(SERVICES, service, "default")
        wanted = {
            "group": "zoo.example.com",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "caBundle": base64.b64encode(found.ca).decode(),
            "service": {"name": "zoo", "namespace": "default", "port": found.port},
            **spec,
        }
        body = {"metadata": {"name": f"v1.{wanted['group']}"}, "spec": wanted}
        await self.client.create(API_SERVICES, body)

    async def condition(self, reason: str) -> Object:
        """Wait until the APIService gives this reason, and return the condition."""
        async with (
            asyncio.timeout(60),
            self.client.watch(API_SERVICES, initial_events=True) as events,
        ):
            async for event in events:
                found = find_condition(event.object, "Available")
                if found is not None and found["reason"] == reason:
                    return dict(found)
        raise AssertionError("the watch ended")

    async def ask(self, path: str, accept: str = "application/json") -> Any:
        return await self.client.call("GET", path, {}, accept=accept)

    @contextlib.asynccontextmanager
    async def connected(
        self, head: str
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]]:
        """Send a request's head over TLS; give what answers it."""
        port = int(self.running.url.rpartition(":")[2])
        tls = client_context(self.ca, self.admin)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1"
        )
        try:
            writer.write(head.replace("\n", "\r\n").encode())
            async with asyncio.timeout(60):
                yield reader, writer, await reader.readuntil(b"\r\n\r\n")
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def plain(folder: Path) -> AsyncIterator[Plain]:
    log.configure(verbosity=0)
    store = StoreSettings(kind="memory")
    settings = ServerSettings(data_dir=folder, port=0, store=store, controllers="core")
    async with serving(settings, PLAIN_SERVER) as running:
        pki = folder / "pki"
        admin = Credential(*((pki / f"admin.{form}").read_bytes() for form in ("crt", "key")))
        client = Client(embedded_transport(running.api))
        yield Plain(running, client, admin, (pki / "ca.crt").read_bytes())


async def test_requests_are_passed_on_with_the_name_of_who_asks(tmp_path: Path) -> None:
    async with zoo() as other, plain(tmp_path) as server:
        await server.register(other)
        passed = await server.condition("Passed")
        assert (passed["status"], passed["message"]) == ("True", "all checks passed")
        path = "/apis/zoo.example.com/v1/namespaces/default/pandas?limit=5"
        head = f"GET {path} HTTP/1.1\nHost: x\nX-Remote-User: evil\nAuthorization: Basic e\n\n"
        async with server.connected(head) as (_, _, answer):
            assert answer.startswith(b"HTTP/1.1 201")
            assert b"a: b" in answer.lower()
        seen = other.asked[-1]
        assert (seen.path, seen.query_string) == (path.partition("?")[0], "limit=5")
        assert seen.headers["x-remote-user"] == "kubernetes-admin"
        groups = set(seen.headers["x-remote-group"].split("\n"))
        assert groups == {"system:masters", "system:authenticated"}
        assert "authorization" not in seen.headers
        trust = await server.client.get(
            CONFIG_MAPS, "extension-apiserver-authentication", "kube-system"
        )
        proxy = x509.load_pem_x509_certificate(
            trust["data"]["requestheader-client-ca-file"].encode()
        )
        shown = x509.load_pem_x509_certificate(
            (tmp_path / "pki" / "front-proxy-client.crt").read_bytes()
        )
        shown.verify_directly_issued_by(proxy)
        assert trust["data"]["requestheader-allowed-names"] == '["front-proxy-client"]'


async def test_watches_large_answers_and_upgrades_pass_through(tmp_path: Path) -> None:
    async with zoo() as other, plain(tmp_path) as server:
        await server.register(other)
        await server.condition("Passed")
        async with server.client.watch(PANDAS) as events:
            found = [(await anext(events)).kind]
            other.going.set()
            found += [event.kind async for event in events]
        assert found == ["ADDED", "DELETED"]
        base = "/apis/zoo.example.com/v1/pandas"
        async with server.connected(f"GET {base}/large HTTP/1.0\nHost: x\n\n") as (reader, _, _):
            assert len(await reader.read(-1)) == 3 << 20
        offer = "Connection: Upgrade\nUpgrade: zoo/1\n\n"
        head = f"GET {base}/a/stream HTTP/1.1\nHost: x\n{offer}"
        async with server.connected(head) as (reader, writer, answer):
            assert answer.startswith(b"HTTP/1.1 101")
            assert b"x-zoo: yes" in answer.lower()
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"HELLO"


async def test_what_others_describe_joins_our_description(tmp_path: Path) -> None:
    async with zoo() as other, plain(tmp_path) as server:
        before = await server.ask("/openapi/v2")
        await server.register(other)
        await server.condition("Passed")
        found = await server.ask("/openapi/v2")
        assert found["paths"].keys() - before["paths"].keys() == {"/apis/zoo.example.com/v1/pandas"}
        assert found["definitions"].keys() - before["definitions"].keys() == {PANDA, "Bamboo"}
        path = "/apis/apps/v1/namespaces/{namespace}/deployments"
        assert found["paths"][path] == before["paths"][path]


async def test_what_others_serve_is_in_the_documents(tmp_path: Path) -> None:
    async with zoo() as other, plain(tmp_path) as server:
        await server.register(other)
        await server.condition("Passed")
        groups = {each["name"]: each for each in (await server.ask("/apis"))["groups"]}
        assert {"apps", "zoo.example.com"} <= set(groups)
        assert groups["zoo.example.com"]["preferredVersion"]["version"] == "v1"
        assert (await server.ask("/apis/zoo.example.com"))["kind"] == "APIGroup"
        assert await server.ask("/apis/zoo.example.com/v1") == RESOURCES
        index = (await server.ask("/openapi/v3"))["paths"]
        where = index["apis/zoo.example.com/v1"]["serverRelativeURL"]
        assert where.startswith("/openapi/v3/apis/zoo.example.com/v1")
        assert "apis/apps/v1" in index
        await server.ask("/openapi/v3/apis/zoo.example.com/v1")
        assert other.asked[-1].path == "/openapi/v3/apis/zoo.example.com/v1"
        form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        items = (await server.ask("/apis", form))["items"]
        (found,) = [each for each in items if each["metadata"]["name"] == "zoo.example.com"]
        (version,) = found["versions"]
        assert version["freshness"] == "Current"
        (resource,) = version["resources"]
        assert (resource["resource"], resource["scope"]) == ("pandas", "Namespaced")
        assert [each["subresource"] for each in resource["subresources"]] == ["status"]


async def test_a_server_that_is_away_costs_nobody_but_who_asks_for_it(tmp_path: Path) -> None:
    async with plain(tmp_path) as server:
        gone = Zoo(port=1)
        async with zoo() as other:
            gone.ca = other.ca
        await server.register(gone)
        failed = await server.condition("FailedDiscoveryCheck")
        assert failed["message"].startswith("failing or missing response from https://localhost:1/")
        path = "/apis/zoo.example.com/v1/pandas"
        async with server.connected(f"GET {path} HTTP/1.1\nHost: x\n\n") as (reader, _, answer):
            assert answer.startswith(b"HTTP/1.1 503")
            assert await reader.readexactly(20) == b"service unavailable\n"
        assert (await server.ask("/apis"))["kind"] == "APIGroupList"
        await server.client.delete(API_SERVICES, "v1.zoo.example.com")
        missing = None
        try:
            await server.ask(path)
        except ApiError as error:
            missing = error.code
        assert missing == 404


async def test_what_is_served_here_is_never_passed_on(tmp_path: Path) -> None:
    async with zoo() as other, plain(tmp_path) as server:
        await server.register(other, group="apps")
        assert (await server.ask("/apis/apps/v1/deployments"))["kind"] == "DeploymentList"
        assert all(each.path == "/apis/apps/v1" for each in other.asked), "it was only probed"


async def test_a_certificate_that_nobody_vouches_for_is_refused_unless_that_is_wanted(
    tmp_path: Path,
) -> None:
    async with zoo() as other, plain(tmp_path) as server:
        ca = new_ca("another", SystemClock()).certificate
        await server.register(other, caBundle=base64.b64encode(ca).decode())
        failed = await server.condition("FailedDiscoveryCheck")
        assert "certificate verify failed" in failed["message"]
        live = await server.client.get(API_SERVICES, "v1.zoo.example.com")
        live["spec"] |= {"insecureSkipTLSVerify": True, "caBundle": None}
        await server.client.update(API_SERVICES, live)
        await server.condition("Passed")
