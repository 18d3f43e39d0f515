"""Who reaches what: every cell of the table in ``docs/security.md``, asked of a real hub.

The page names a level for each principal and kind of logical cluster. A level is a set of
requests that are answered; every other request must be refused (401 or 403), whichever verb, path
or representation it has. All writes are dry runs, so that no cell depends on another.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from skerry.api.edge_identity import REVOKED
from skerry.kit.timestamps import rfc3339_micro
from skerry.server.http.message import Response, Stream
from tests.kit.server.edges import ESPW, IMW, Edge, EdgeHub, running_edge_hub
from tests.kit.server.hub import BINDERS, CLUSTERS, binding, grants

PAGE = Path(__file__).parents[4] / "docs" / "security.md"
REFUSED = frozenset((401, 403))
DRY = "dryRun=All"

Ask = Callable[[str, str, Any, dict[str, str]], Awaitable[int]]


@dataclass(frozen=True)
class Asked:
    """One request within a cluster; ``about`` is the group of requests that levels name."""

    about: str
    verb: str
    method: str
    path: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


# -- requests --------------------------------------------------------------------------------

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_KCP = "/apis/apis.kcp.io/v1alpha1"
# What requests are about → collections, and what an object of each is like.
_COLLECTIONS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "data": (
        ("/api/v1/namespaces/default/configmaps", {"data": {"a": "b"}}),
        ("/api/v1/namespaces/default/secrets", {"stringData": {"a": "b"}}),
        ("/api/v1/namespaces/default/resourcequotas", {"spec": {"hard": {"pods": "9"}}}),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {}}),
        ("/api/v1/namespaces", {}),
    ),
    "authority": (
        (f"{_RBAC}/clusterroles", {"rules": []}),
        (f"{_RBAC}/namespaces/default/roles", {"rules": []}),
        ("/api/v1/namespaces/default/serviceaccounts", {}),
    ),
    "exports": ((f"{_KCP}/apiexports", {"spec": {}}),),
}
_EVERYWHERE = ("/api/v1/configmaps", "/api/v1/secrets", f"{_RBAC}/rolebindings")
_NAME = "matrix"


def _reads(path: str) -> Iterator[tuple[str, str, str, Any]]:
    yield "get", "GET", f"{path}/{_NAME}", None
    yield "list", "GET", path, None
    yield "watch", "GET", f"{path}?watch=1", None
    yield "watch", "GET", f"{path}?watch=1&fieldSelector=metadata.name%3D{_NAME}", None


def _writes(path: str, content: dict[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    obj = _object(path, content)
    # A write that changes nothing harms nobody; these change something.
    obj["metadata"]["labels"] = {"a": "b"}
    one = f"{path}/{_NAME}?{DRY}"
    yield "create", "POST", f"{path}?{DRY}", obj
    yield "update", "PUT", one, obj
    yield "patch", "PATCH", one, {"metadata": {"labels": {"a": "b"}}}
    yield "apply", "PATCH", f"{one}&fieldManager=m&force=true", obj
    yield "delete", "DELETE", one, None
    if not path.endswith("/namespaces"):
        yield "deletecollection", "DELETE", f"{path}?{DRY}", None


def _object(path: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return what is written to a collection; apply wants its kind."""
    parts = path.split("/")
    version = "v1" if parts[1] == "api" else f"{parts[2]}/{parts[3]}"
    kind = _KINDS[parts[-1]]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": _NAME}, **content}


_KINDS = {
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "resourcequotas": "ResourceQuota",
    "leases": "Lease",
    "namespaces": "Namespace",
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "serviceaccounts": "ServiceAccount",
    "apiexports": "APIExport",
}


def requests() -> list[Asked]:
    """Return every request that is made of every cluster as every principal."""
    found: list[Asked] = []
    for about, collections in _COLLECTIONS.items():
        for path, content in collections:
            for verb, method, target, body in itertools.chain(_reads(path), _writes(path, content)):
                headers = _PATCHES.get(verb, ())
                found.append(Asked(about, verb, method, target, body, headers))
    for path in _EVERYWHERE:
        found += [Asked("data", verb, *asked) for verb, *asked in _reads(path) if verb != "get"]
        partial = (("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),)
        found.append(Asked("data", "list", "GET", path, None, partial))
    return [*found, *_particular()]


_MERGE = (("content_type", "application/merge-patch+json"),)
_PATCHES = {"patch": _MERGE, "apply": (("content_type", "application/apply-patch+yaml"),)}


def _particular() -> Iterator[Asked]:
    """Yield the requests that are like no other."""
    for path in ("/healthz", "/livez", "/readyz"):
        yield Asked("health", "get", "GET", path)
    for path in ("/metrics", "/metrics/", "/debug/pprof/"):
        yield Asked("metrics", "get", "GET", path)
    for path in ("/api", "/apis", "/api/v1", "/apis/apps/v1", "/version"):
        yield Asked("discovery", "get", "GET", path)
    workspaces = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
    yield Asked("workspaces", "list", "GET", workspaces)
    made = {"metadata": {"name": _NAME}, "spec": {"type": {"name": "universal", "path": "root"}}}
    yield Asked("children", "create", "POST", f"{workspaces}?{DRY}", made)
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    account = "/api/v1/namespaces/default/serviceaccounts/default/token"
    yield Asked("authority", "create", "POST", f"{account}?{DRY}", token)
    for where, name in ((ESPW, "edge.kcp.io"), ("root:compute", "kubernetes")):
        bound = binding("bind-matrix", where, name)
        yield Asked("bind", "create", "POST", f"{_KCP}/apibindings?{DRY}", bound)
    # What the server itself says of a cluster: where it lies, whose it is, whether it is closed.
    closed = {"metadata": {"annotations": {REVOKED: "2030-01-01T00:00:00Z"}}}
    path = f"{CLUSTERS}/cluster?{DRY}"
    yield Asked("closing", "patch", "PATCH", path, closed, _MERGE)
    for change in (
        {"metadata": {"annotations": {"kcp.io/path": "elsewhere"}}},
        {"metadata": {"annotations": {"experimental.tenancy.kcp.io/owner": "{}"}}},
        {"spec": {"owner": {"name": "somebody"}}},
    ):
        yield Asked("cluster", "patch", "PATCH", path, change, _MERGE)
    exec_path = "/api/v1/namespaces/default/pods/p/exec?command=id"
    yield Asked("data", "exec", "GET", exec_path)
    yield Asked("data", "exec", "POST", exec_path)


# -- levels ----------------------------------------------------------------------------------

_ADMINISTERED = ("discovery", "workspaces", "data", "authority", "exports", "children")


def _about(*names: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.about in names


# What the SyncerConfig of the test names: collections that may be listed and watched. The objects
# of the mailbox are no copies and no reports, so no single one may be read or written.
_IN_SCOPE = (
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces",
    f"{_RBAC}/clusterroles",
)


def _edge(asked: Asked) -> bool:
    if asked.about == "discovery":
        return True
    return asked.verb in ("list", "watch") and asked.path.partition("?")[0] in _IN_SCOPE


LEVELS: dict[str, Callable[[Asked], bool]] = {
    "nothing": _about(),
    "health": _about("health"),
    "visitor": _about("health", "discovery", "workspaces"),
    "scoped administrator": _about(*_ADMINISTERED),
    "administrator": _about(*_ADMINISTERED, "health"),
    "edge": _edge,
    "hub": _about(*_ADMINISTERED, "health", "metrics", "bind", "closing"),
    "metrics": _about("health", "metrics"),
}


def table() -> dict[tuple[str, str], str]:
    """Return the level of each principal in each kind of cluster, as the page says."""
    text = PAGE.read_text()
    section = text.split("## Who reaches what")[1].split("\n## ")[0]
    rows = [
        [re.sub(r"[`*]", "", cell).strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|") and not re.match(r"^[|\s-]+$", line)
    ]
    head = next(row for row in rows if row[0] == "principal")
    body = rows[rows.index(head) + 1 :]
    return {
        (row[0], column): level
        for row in body
        if len(row) == len(head)
        for column, level in zip(head[1:], row[1:], strict=True)
    }


# -- principals ------------------------------------------------------------------------------


def _by_token(hub: EdgeHub, user: str, **always: str) -> Ask:
    async def ask(method: str, path: str, body: Any, headers: dict[str, str]) -> int:
        answer = await hub.answer(user, method, path, body, {**headers, **always})
        return _status(answer)

    return ask


def _by_certificate(edge: Edge) -> Ask:
    async def ask(method: str, path: str, body: Any, headers: dict[str, str]) -> int:
        return _status(await edge.answer(method, path, body, "", **headers))

    return ask


def _status(answer: Response | Stream) -> int:
    return answer.status if isinstance(answer, Response) else 200


async def _robot(hub: EdgeHub, cluster: str) -> str:
    """Return a token of a ServiceAccount that administers *cluster*."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await hub.create(cluster, accounts, {"metadata": {"name": "robot"}})
    bound = grants("robot", "cluster-admin", "robot")
    bound["subjects"] = [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]
    await hub.create(cluster, BINDERS, bound)
    made = await hub.create(
        cluster,
        f"{accounts}/robot/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    return str(made["status"]["token"])


async def _revoked(hub: EdgeHub) -> Edge:
    edge = await (await hub.edge("revoked")).join()
    closed = {"metadata": {"annotations": {REVOKED: rfc3339_micro(hub.clock.now())}}}
    path = f"/clusters/{edge.mailbox}{CLUSTERS}/cluster"
    reply = await hub.ask(
        "kcp-admin", "PATCH", path, closed, content_type="application/merge-patch+json"
    )
    assert reply.status == 200, reply.body
    return edge


async def _lapsed(hub: EdgeHub) -> Edge:
    """Return an edge whose certificate ended yesterday."""
    edge = await hub.edge("lapsed")
    hub.clock.ahead = timedelta(days=-8)
    await edge.join()
    hub.clock.ahead = timedelta()
    return edge


async def test_every_cell_of_the_table_is_as_the_page_says(tmp_path: Path) -> None:
    """Also with forged groups, other representations, and verbs that RBAC could not tell apart."""
    wanted, cells, wrong = table(), 0, []
    async with running_edge_hub(tmp_path) as hub:
        shop = await hub.workspace("root", "shop", admin="alice")
        other = await hub.workspace("root", "other", admin="zoe")
        await hub.create(shop, BINDERS, grants("carol", "cluster-admin", "carol"))
        edge, guilder = await (await hub.edge()).join(), await hub.edge("guilder")
        revoked, lapsed = await _revoked(hub), await _lapsed(hub)
        bootstrap = await guilder.credential()
        for path, content in itertools.chain(*_COLLECTIONS.values()):
            await hub.create(edge.mailbox, path, _object(path, content))
        mailboxes = {each.mailbox for each in (edge, guilder, revoked, lapsed)}
        asking: dict[str, tuple[Ask, str]] = {
            "anonymous": (_by_token(hub, ""), shop),
            "a user without grants": (_by_token(hub, "bob"), shop),
            "an administrator of a workspace": (_by_token(hub, "alice"), shop),
            "… impersonating a user of it": (
                _by_token(hub, "alice", impersonate_user="carol"),
                shop,
            ),
            "… impersonating the hub's administrator": (
                _by_token(
                    hub, "alice", impersonate_user="kcp-admin", impersonate_group="system:kcp:admin"
                ),
                shop,
            ),
            "… impersonating an edge": (
                _by_token(
                    hub, "alice", impersonate_user=edge.name.user, impersonate_group="system:edges"
                ),
                shop,
            ),
            "a ServiceAccount that administers it": (_by_token(hub, await _robot(hub, shop)), shop),
            "an edge": (_by_certificate(edge), edge.mailbox),
            "an edge whose certificate lapsed": (_by_certificate(lapsed), lapsed.mailbox),
            "a revoked edge": (_by_certificate(revoked), revoked.mailbox),
            "a bootstrap credential": (_by_token(hub, bootstrap.bearer), guilder.mailbox),
            "the hub's administrator": (_by_token(hub, "kcp-admin"), shop),
        }
        assert {principal for principal, _ in wanted} == asking.keys()
        for principal, (ask, own) in asking.items():
            where = {
                "its own": (own,),
                "another workspace": (other,),
                "root": ("root",),
                "provider, inventory, compute": (ESPW, IMW, "root:compute"),
                "another mailbox": (guilder.mailbox if own != guilder.mailbox else edge.mailbox,),
                "all at once": ("*",),
            }
            assert {column for _, column in wanted} == where.keys()
            for column, clusters in where.items():
                level = wanted[principal, column]
                for cluster, asked in itertools.product(clusters, requests()):
                    status = await ask(
                        asked.method,
                        f"/clusters/{cluster}{asked.path}",
                        asked.body,
                        dict(asked.headers),
                    )
                    cells += 1
                    allowed = LEVELS[level](asked)
                    refused = status in REFUSED
                    if asked.about == "closing":
                        # Only a mailbox can be closed, whoever asks.
                        allowed = allowed and cluster in mailboxes
                        refused = refused or status == 422
                    if refused == allowed or status >= 500:
                        wrong.append((principal, column, level, asked.verb, asked.path, status))
    assert not wrong, "\n".join(map(str, [len(wrong), *wrong[:60]]))
    assert cells >= 2000
