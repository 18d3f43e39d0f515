"""A hub with the edge API in this process, and edges that join it with keys of their own."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from skerry.api.edge_identity import (
    EDGES,
    BootstrapToken,
    EdgeName,
    bootstrap_secret,
    certificate_request,
    request_name,
)
from skerry.app.hub import hub_flavor
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import serving
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.kit.timestamps import rfc3339
from skerry.server.http.message import Peer, Request, Response, Stream
from tests.kit.server.certificates import Key, csr, subject
from tests.kit.server.harness import MemorySender, Reply
from tests.kit.server.hub import (
    BINDINGS,
    CLUSTERS,
    SYNC_TARGETS,
    TOKENS,
    Hub,
    binding,
    config_map,
    workspace,
)

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SECRETS = "/api/v1/namespaces/default/secrets"
CONFIGS = "/apis/edge.kcp.io/v1alpha1/syncerconfigs"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE = f"{LEASES}/syncer-heartbeat"
ESPW, IMW = "root:espw", "root:imw"
SPEC: dict[str, Any] = {
    "namespaceScope": {
        "namespaces": ["shop"],
        "resources": [
            {"group": "", "resource": "configmaps", "apiVersion": "v1"},
            {"group": "", "resource": "secrets", "apiVersion": "v1"},
            {"group": "rbac.authorization.k8s.io", "resource": "roles", "apiVersion": "v1"},
        ],
    },
    "clusterScope": [
        {
            "group": "rbac.authorization.k8s.io",
            "resource": "clusterroles",
            "apiVersion": "v1",
            "objects": ["*"],
        }
    ],
    "upsync": [
        {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["up"], "names": ["*"]},
        {
            "apiGroup": "rbac.authorization.k8s.io",
            "resources": ["*"],
            "namespaces": ["*"],
            "names": ["*"],
        },
        {
            "apiGroup": "",
            "resources": ["serviceaccounts", "secrets"],
            "namespaces": ["*"],
            "names": ["*"],
        },
    ],
}


class MovedClock(SystemClock):
    """The machine's clock, moved."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


@dataclass
class EdgeHub(Hub):
    """A hub that edges join."""

    clock: MovedClock = field(default_factory=MovedClock)
    data_dir: Path = Path()

    async def edge(
        self, name: str = "florin", spec: dict[str, Any] | None = None, inventory: str = IMW
    ) -> Edge:
        """Make a SyncTarget, its mailbox and its SyncerConfig; the edge has yet to join."""
        if (await self.ask("kcp-admin", "GET", f"/clusters/{inventory}/api")).status != 200:
            await self.workspace("root", inventory.removeprefix("root:"), "universal")
        target = await self.create(inventory, SYNC_TARGETS, _object("SyncTarget", name, {}))
        metadata = target["metadata"]
        place = f"{metadata['annotations']['kcp.io/cluster']}-mb-{metadata['uid']}"
        made = await self.create(ESPW, "/apis/tenancy.kcp.io/v1alpha1/workspaces", workspace(place))
        mailbox = str(made["spec"]["cluster"])
        await self.create(mailbox, BINDINGS, binding("bind-edge", ESPW, "edge.kcp.io"))
        config = _object("SyncerConfig", "the-one", SPEC if spec is None else spec)
        await self.create(mailbox, CONFIGS, config)
        for namespace in ("shop", "up"):
            await self.create(mailbox, "/api/v1/namespaces", {"metadata": {"name": namespace}})
        return Edge(self, name, EdgeName(mailbox, metadata["uid"]))


@dataclass
class Edge:
    """One edge: its key, its credentials, and requests made with them."""

    hub: EdgeHub
    target: str
    name: EdgeName
    key: Key = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    certificate: bytes | None = None

    @property
    def mailbox(self) -> str:
        return self.name.mailbox

    async def credential(
        self, *, approved: bool = True, token_id: str = "abc123", seconds: float = 3600
    ) -> BootstrapToken:
        """Mint a bootstrap credential as the hub's administrator."""
        token = BootstrapToken(token_id, "s" * 43)
        ends = rfc3339(self.hub.clock.now() + timedelta(seconds=seconds))
        secret = bootstrap_secret(
            token, sync_target=self.target, expiration=ends, approved=approved
        )
        await self.hub.create(self.mailbox, SECRETS, secret)
        return token

    async def request(self, credential: BootstrapToken | None = None, **more: Any) -> Reply:
        """Ask for a certificate with a bootstrap credential, or with the present one."""
        body = self.signing_request(**more)
        if credential is None:
            return await self.ask("POST", REQUESTS, body)
        return await self.hub.ask(
            credential.bearer, "POST", f"/clusters/{self.mailbox}{REQUESTS}", body
        )

    async def join(self, **more: Any) -> Edge:
        """Get a certificate through a pre-approved credential."""
        reply = await self.request(await self.credential(**more))
        assert reply.status == 201, reply.body
        return self.take(reply.body)

    def take(self, request: dict[str, Any]) -> Edge:
        """Use the certificate of an answered request."""
        self.certificate = der_of(request)
        return self

    def signing_request(self, seconds: int | None = None, **of: Any) -> dict[str, Any]:
        pem = csr(
            of.get("key", self.key),
            of.get("subject", subject(self.name.common_name, (EDGES,))),
            **_extra(of),
        )
        made = certificate_request(name_for(of.get("key", self.key)), pem, seconds)
        if "name" in of:
            made["metadata"]["name"] = of["name"]
        made["spec"].update(of.get("spec", {}))
        return made

    async def ask(
        self, method: str, path: str, obj: Any = None, where: str | None = None, **headers: str
    ) -> Reply:
        """Ask with the edge's certificate, in its mailbox or *where*."""
        answer = await self.answer(method, path, obj, where, **headers)
        assert isinstance(answer, Response), answer
        raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        parsed: Any = raw
        with contextlib.suppress(orjson.JSONDecodeError):
            parsed = orjson.loads(raw)
        return Reply(answer.status, parsed, list(answer.headers), raw)

    async def answer(
        self, method: str, path: str, obj: Any = None, where: str | None = None, **headers: str
    ) -> Response | Stream:
        prefix = f"/clusters/{self.mailbox}" if where is None else where
        path, _, query = f"{prefix}{path}".partition("?")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.setdefault("content-type", "application/json")
        body = b"" if obj is None else orjson.dumps(obj)
        peer = Peer("127.0.0.1", self.certificate)
        return await self.hub.running.api.engine.handle(
            Request(method, path, query, sent, body, peer)
        )

    async def watch(self, path: str, obj: Any = None) -> MemorySender:
        """Open a stream with the edge's certificate; it ends with the hub."""
        method = "GET" if obj is None else "POST"
        answer = await self.answer(method, path, obj)
        return await self.hub.streaming(answer)

    async def place(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Put a projected copy into the mailbox, as the translator does."""
        obj["metadata"].setdefault("labels", {})["edge.kcp.io/projected"] = "yes"
        placed: dict[str, Any] = await self.hub.create(self.mailbox, path, obj)
        return placed


def _extra(of: dict[str, Any]) -> dict[str, Any]:
    return {"alternatives": of["alternatives"]} if "alternatives" in of else {}


def _object(kind: str, name: str, spec: Any) -> dict[str, Any]:
    versions = {
        "SyncTarget": "workload.kcp.io/v1alpha1",
        "SyncerConfig": "edge.kcp.io/v1alpha1",
    }
    return {
        "apiVersion": versions[kind],
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def name_for(key: Key) -> str:
    return request_name(
        key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def certificate_of(request: dict[str, Any]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(request["status"]["certificate"]))


def der_of(request: dict[str, Any]) -> bytes:
    return certificate_of(request).public_bytes(serialization.Encoding.DER)


@contextlib.asynccontextmanager
async def running_edge_hub(
    folder: Path, store: StoreSettings | None = None, **settings: Any
) -> AsyncIterator[EdgeHub]:
    """Run a hub with the edge provider inside the context."""
    log.configure(verbosity=0, format="text")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokens.csv").write_text(TOKENS)
    chosen = ServerSettings(
        data_dir=folder,
        port=0,
        store=store or StoreSettings(kind="memory"),
        token_auth_file=folder / "tokens.csv",
        controllers="none",
        workers=0,
        **settings,
    )
    clock = MovedClock()
    async with serving(chosen, hub_flavor(with_edge_provider=True), clock) as running:
        tokens = orjson.loads((folder / "pki" / "admin-tokens.json").read_bytes())
        tokens |= {"alice": "alice-token", "bob": "bob-token"}
        hub = EdgeHub(running, tokens, clock=clock, data_dir=folder)
        async with hub.watches:
            yield hub


def in_edge_hub(
    test: Callable[[EdgeHub], Awaitable[None]],
) -> Callable[[Path], Awaitable[None]]:
    """Run *test* in a hub of its own, all in one task as task groups demand."""

    async def wrapped(tmp_path: Path) -> None:
        async with running_edge_hub(tmp_path) as hub:
            await test(hub)

    wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
    return wrapped


SHOP = "/api/v1/namespaces/shop"


UP = "/api/v1/namespaces/up"


MERGE = "application/merge-patch+json"


MARK = {"metadata": {"annotations": {"edge.kcp.io/applied": "1-abc"}}}


ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def report(name: str, **more: Any) -> dict[str, Any]:
    notes = {"edge.kcp.io/upsynced": "true"}
    return {**config_map(name), "metadata": {"name": name, "annotations": notes, **more}}


def lease_of(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "syncer-heartbeat"},
        "spec": {"leaseDurationSeconds": 60, "holderIdentity": "me", **spec},
    }


APPROVER = {
    "apiGroups": ["certificates.k8s.io"],
    "resources": ["signers"],
    "resourceNames": ["edge.kcp.io/edge-client"],
    "verbs": ["approve"],
}


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


async def mark(hub: EdgeHub, edge: Edge, value: str | None = "now", user: str = "kcp-admin") -> Any:
    path = f"/clusters/{edge.mailbox}{CLUSTERS}/cluster"
    change = {"metadata": {"annotations": {"edge.kcp.io/edge-revoked": value}}}
    return await hub.ask(user, "PATCH", path, change, content_type=MERGE)


async def revoke(hub: EdgeHub, edge: Edge) -> None:
    reply = await mark(hub, edge)
    assert reply.status == 200, reply.body


async def ended(sender: MemorySender) -> None:
    async with asyncio.timeout(60):
        while not sender.closed:
            await asyncio.sleep(0.001)
