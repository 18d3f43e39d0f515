"""A whole hub in this process, asked as different users by their tokens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from skerry.app.hub import hub_flavor
from skerry.app.settings import OidcSettings, ServerSettings, StoreSettings
from skerry.app.standalone import Running, serving
from skerry.kit import log
from skerry.kit.clock import Clock
from skerry.server.http.message import Request, Response, Stream
from tests.kit.server.harness import MemorySender, Reply

TOKENS = """\
alice-token,alice,alice
bob-token,bob,bob
"""
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
BINDINGS = "/apis/apis.kcp.io/v1alpha1/apibindings"
EXPORTS = "/apis/apis.kcp.io/v1alpha1/apiexports"
SCHEMAS = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CLUSTERS = "/apis/core.kcp.io/v1alpha1/logicalclusters"
SYNC_TARGETS = "/apis/workload.kcp.io/v1alpha1/synctargets"
LOCATIONS = "/apis/scheduling.kcp.io/v1alpha1/locations"
_RBAC = "rbac.authorization.k8s.io"
BINDERS = f"/apis/{_RBAC}/v1/clusterrolebindings"
ROLES = f"/apis/{_RBAC}/v1/clusterroles"


@dataclass
class Hub:
    """The hub and who may speak to it."""

    running: Running
    tokens: dict[str, str]
    watches: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    async def ask(
        self, user: str, method: str, path: str, obj: Any = None, **headers: str
    ) -> Reply:
        """Ask as *user* (a name, a token, or nobody); return the whole answer."""
        answer = await self.answer(user, method, path, obj, headers)
        assert isinstance(answer, Response)
        raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        parsed: Any = raw.decode()
        with contextlib.suppress(orjson.JSONDecodeError):
            parsed = orjson.loads(raw)
        return Reply(answer.status, parsed, list(answer.headers), raw)

    async def answer(
        self, user: str, method: str, path: str, obj: Any, headers: dict[str, str]
    ) -> Response | Stream:
        path, _, query = path.partition("?")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.setdefault("content-type", "application/json")
        if user:
            sent["authorization"] = f"Bearer {self.tokens.get(user, user)}"
        body = orjson.dumps(obj) if obj is not None else b""
        request = Request(method, path, query, sent, body)
        return await self.running.api.engine.handle(request)

    async def create(self, where: str, path: str, obj: Any, user: str = "kcp-admin") -> Any:
        """Create *obj* in the workspace *where*, or fail the test."""
        reply = await self.ask(user, "POST", f"/clusters/{where}{path}", obj)
        assert reply.status == 201, reply.body
        return reply.body

    async def get(self, where: str, path: str, user: str = "kcp-admin") -> Any:
        reply = await self.ask(user, "GET", f"/clusters/{where}{path}")
        assert reply.status == 200, reply.body
        return reply.body

    async def workspace(self, parent: str, name: str, kind: str = "", admin: str = "") -> str:
        """Create a workspace, perhaps with an administrator of its own; return its cluster."""
        spec = {"type": {"name": kind, "path": "root"}} if kind else {}
        made = await self.create(parent, WORKSPACES, workspace(name, spec))
        cluster = str(made["spec"]["cluster"])
        if admin:
            await self.create(cluster, BINDERS, grants(f"admin-{admin}", "cluster-admin", admin))
        return cluster

    async def cluster_of(self, where: str) -> str:
        """Return the name of the logical cluster of a workspace."""
        found = await self.get(where, f"{CLUSTERS}/cluster")
        return str(found["metadata"]["annotations"]["kcp.io/cluster"])

    async def gone(self, where: str, path: str) -> None:
        """Wait until there is nothing at *path* any more, and the server itself knows."""
        async with asyncio.timeout(60):
            while (await self.ask("kcp-admin", "GET", f"/clusters/{where}{path}")).status != 404:
                await self.settled()
            api = self.running.api
            await api.dispatcher.reached(await api.store.revision())

    async def settled(self) -> None:
        """Let everybody else run."""
        await asyncio.sleep(0.002)

    async def until(self, where: str, path: str, *wanted: Any) -> Any:
        """Wait until the member at *wanted*'s path has its last value; return the object."""
        *members, value = wanted
        async with asyncio.timeout(60):
            while True:
                node = found = await self.get(where, path)
                for member in members:
                    node = node[member] if isinstance(member, int) else (node or {}).get(member)
                if node == value:
                    return found
                await self.settled()

    async def watch(self, user: str, path: str) -> MemorySender:
        """Begin a watch; it ends with the hub."""
        return await self.streaming(await self.answer(user, "GET", path, None, {}))

    async def streaming(self, answer: Response | Stream) -> MemorySender:
        """Run a stream until the hub ends it, or ends itself."""
        assert isinstance(answer, Stream), answer
        sender = MemorySender()
        tasks = await self.watches.enter_async_context(asyncio.TaskGroup())
        task = tasks.create_task(_run(answer, sender))
        self.watches.callback(task.cancel)
        await self.settled()
        return sender

    async def keys(self) -> set[str]:
        """Return every key of the store."""
        return {entry.key for entry in (await self.running.api.store.range("/")).entries}


async def _run(stream: Stream, sender: MemorySender) -> None:
    await stream.run(sender)
    sender.closed = True


@contextlib.asynccontextmanager
async def running_hub(
    folder: Path,
    store: StoreSettings | None = None,
    *,
    controllers: bool = False,
    edge_provider: bool = False,
    users: str = "",
    workers: int = 0,
    webhook_networks: tuple[str, ...] = (),
    console: bool = False,
    console_process: bool = False,
    audit_log: Path | None = None,
    clock: Clock | None = None,
    issuer: tuple[OidcSettings, Path] | None = None,
) -> AsyncIterator[Hub]:
    """Run a hub inside the context; *users* are further lines of its token file.

    *issuer* vouches for people, and the file says by which authority it is known.
    """
    log.configure(verbosity=0, format="text")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokens.csv").write_text(TOKENS + users)
    settings = ServerSettings(
        data_dir=folder,
        port=0,
        store=store or StoreSettings(kind="memory"),
        token_auth_file=folder / "tokens.csv",
        controllers="core" if controllers else "none",
        workers=workers,
        webhook_networks=webhook_networks,
        console_port=0 if console else None,
        console_process=console_process,
        audit_log=audit_log,
        oidc=issuer[0] if issuer else None,
        oidc_ca_file=issuer[1] if issuer else None,
    )
    async with serving(settings, hub_flavor(with_edge_provider=edge_provider), clock) as running:
        tokens = orjson.loads((folder / "pki" / "admin-tokens.json").read_bytes())
        tokens |= {"alice": "alice-token", "bob": "bob-token"}
        hub = Hub(running, tokens)
        async with hub.watches:
            yield hub


@dataclass
class HubPlace:
    """Where a test's hub keeps its things; a fixture of that name must give one."""

    folder: Path
    store: StoreSettings | None = None
    controllers: bool = False
    edge_provider: bool = False
    users: str = ""


def in_hub(test: Callable[[Hub], Awaitable[None]]) -> Callable[[HubPlace], Awaitable[None]]:
    """Run *test* in a hub of its own, all in one task as task groups demand."""

    async def wrapped(hub_place: HubPlace) -> None:
        place = hub_place
        async with running_hub(
            place.folder,
            place.store,
            controllers=place.controllers,
            edge_provider=place.edge_provider,
            users=place.users,
        ) as hub:
            await test(hub)

    wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
    return wrapped


def workspace(name: str, spec: Any = None) -> dict[str, Any]:
    return {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": name},
        "spec": spec or {},
    }


def grants(name: str, role: str, user: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
    }


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": list(rules),
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def schema(plural: str = "widgets", prefix: str = "v1", **more: Any) -> dict[str, Any]:
    kind = plural[:-1].title()
    names = {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"}
    properties = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": f"{prefix}.{plural}.example.io"},
        "spec": {
            "group": "example.io",
            "names": names,
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"type": "object", "properties": properties},
                    "subresources": {"status": {}},
                }
            ],
            **more,
        },
    }


def export(name: str, *schemas: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExport",
        "metadata": {"name": name},
        "spec": {"latestResourceSchemas": list(schemas), **spec},
    }


def binding(name: str, path: str, of: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": name},
        "spec": {"reference": {"export": {"path": path, "name": of}}, **spec},
    }


def definition(plural: str = "widgets") -> dict[str, Any]:
    spec = schema(plural)["spec"]
    versions = [{**v, "schema": {"openAPIV3Schema": v["schema"]}} for v in spec["versions"]]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.io"},
        "spec": {**spec, "versions": versions},
    }


def widget(name: str, kind: str = "Widget", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.io/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": {"size": 1},
    }


WIDGETS = "/apis/example.io/v1/widgets"


async def provider(hub: Hub, where: str, name: str = "widgets", **spec: Any) -> dict[str, Any]:
    """Offer widgets from the workspace *where*; return the export."""
    await hub.create(where, SCHEMAS, schema())
    made: dict[str, Any] = await hub.create(
        where, EXPORTS, export(name, "v1.widgets.example.io", **spec)
    )
    return made
