"""Who reaches which namespace of which edge, from where: every combination."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from skerry.server.http.message import Response, Stream
from tests.kit.server.edges import IMW
from tests.kit.server.hub import BINDERS
from tests.kit.server.tunnels import ACTIONS, WEBSOCKET, TunnelHub, in_tunnel_hub

ELSEWHERE = "root:other"
SHOP, MALL = "root:shop", "root:mall"
VERBS = {
    "log": "get",
    "pods": "list",
    "exec": "create",
    "attach": "create",
    "portforward": "create",
}


class Grant(NamedTuple):
    """What somebody may do in a workspace: to edges by name, in namespaces; empty is all."""

    user: str
    where: str
    actions: tuple[str, ...]
    edges: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


GRANTS = (
    # An administrator of a workspace, one who reads some logs there, and operators of inventories.
    Grant("alice", SHOP, ACTIONS),
    Grant("bob", SHOP, ("log",), ("root:imw:florin",), ("books",)),
    Grant("bob", MALL, ("exec", "pods"), ("root:other:florin", "florin")),
    Grant("alice", IMW, ("log", "attach"), ("florin",), ("toys",)),
    Grant("bob", ELSEWHERE, ("portforward",)),
)
# Whose the namespaces are, by inventory and edge.
OWNERS = {
    (IMW, "florin"): {"books": SHOP, "toys": MALL},
    (IMW, "guilder"): {"books": MALL},
    (ELSEWHERE, "florin"): {"toys": MALL, "tools": SHOP},
}
NAMESPACES = ("books", "toys", "tools", "kube-system")
NAMES = ("florin", "guilder", "root:imw:florin", "root:imw:guilder", "root:other:florin", "root:no")


def meant(where: str, name: str, namespace: str) -> tuple[str, str] | None:
    """Return the edge that a name means in a workspace, by what the documentation says."""
    path, _, short = name.rpartition(":")
    if path:
        return (path, short) if (path, short) in OWNERS else None
    if (where, name) in OWNERS:
        return where, name
    found = [
        each
        for each, owners in OWNERS.items()
        if each[1] == name and owners.get(namespace) == where
    ]
    return found[0] if len(found) == 1 else None


def is_allowed(user: str, where: str, name: str, namespace: str, action: str) -> bool:
    edge = meant(where, name, namespace)
    if edge is None:
        return False
    called = edge[1] if edge[0] == where else ":".join(edge)
    granted = any(
        grant.user == user
        and grant.where == where
        and action in grant.actions
        and (not grant.edges or called in grant.edges)
        and (not grant.namespaces or namespace in grant.namespaces)
        for grant in GRANTS
    )
    return granted and (edge[0] == where or OWNERS[edge].get(namespace) == where)


async def given(at: TunnelHub, number: int, grant: Grant) -> None:
    """Make the roles and bindings of a grant."""
    base = f"/clusters/{grant.where}/apis/rbac.authorization.k8s.io/v1"
    name, subjects = f"grant-{number}", [{"kind": "User", "name": grant.user}]
    entry = {"nonResourceURLs": ["/"], "verbs": ["access"]}
    rule = {
        "apiGroups": ["edge.kcp.io"],
        "resources": [f"edges/{action}" for action in grant.actions],
        "verbs": sorted({VERBS[action] for action in grant.actions}),
        **({"resourceNames": list(grant.edges)} if grant.edges else {}),
    }
    made = [(f"{base}/clusterroles", {"metadata": {"name": f"enter-{number}"}, "rules": [entry]})]
    bound = {"metadata": {"name": f"enter-{number}"}, "subjects": subjects}
    made.append((f"{base}/clusterrolebindings", {**bound, "roleRef": role(f"enter-{number}")}))
    made.append((f"{base}/clusterroles", {"metadata": {"name": name}, "rules": [rule]}))
    for namespace in grant.namespaces:
        place = f"/clusters/{grant.where}/api/v1/namespaces"
        made.append((place, {"metadata": {"name": namespace}}))
        binding = {"metadata": {"name": name}, "subjects": subjects, "roleRef": role(name)}
        made.append((f"{base}/namespaces/{namespace}/rolebindings", binding))
    if not grant.namespaces:
        binding = {"metadata": {"name": name}, "subjects": subjects, "roleRef": role(name)}
        made.append((f"{base}/clusterrolebindings", binding))
    for path, obj in made:
        reply = await at.hub.ask("kcp-admin", "POST", path, obj)
        assert reply.status == 201, reply.body


def role(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}


async def fleet(at: TunnelHub) -> None:
    clusters = {
        where: await at.hub.workspace("root", where.removeprefix("root:"), "universal")
        for where in (SHOP, MALL)
    }
    for (inventory, name), owners in OWNERS.items():
        edge = await (await at.hub.edge(name, inventory=inventory)).join()
        await at.dial(edge)
        for namespace, owner in owners.items():
            await at.placed(edge, namespace, clusters[owner])


@in_tunnel_hub
async def test_every_combination_is_answered_as_the_rule_says(at: TunnelHub) -> None:
    await fleet(at)
    for number, grant in enumerate(GRANTS):
        await given(at, number, grant)
    wrong, allowed = [], 0
    places = (SHOP, MALL, IMW, ELSEWHERE)
    for cell in itertools.product(("alice", "bob"), places, NAMES, NAMESPACES, ACTIONS):
        user, where, name, namespace, action = cell
        path = f"/api/v1/namespaces/{namespace}/pods"
        path += "" if action == "pods" else f"/web/{action}"
        headers = WEBSOCKET if VERBS[action] == "create" else {}
        answer = await at.ask(user, where, name, path, **headers)
        passed = isinstance(answer, Stream)
        if isinstance(answer, Stream):
            going = at.going(answer)
            going.line.close()
            await going.ended()
        else:
            # That a name is not plain is said to those who have a right of this kind there.
            known = any((grant.user, grant.where) == (user, where) for grant in GRANTS)
            assert answer.status in ((400, 403) if known else (403,)), (cell, answer)
        allowed += passed
        if passed != is_allowed(*cell):
            wrong.append((cell, passed))
    assert wrong == []
    assert allowed > 20


@in_tunnel_hub
async def test_edges_that_are_and_edges_that_are_not_look_alike_to_a_tenant(at: TunnelHub) -> None:
    await fleet(at)
    grants = {
        "metadata": {"name": "bob"},
        "roleRef": role("cluster-admin"),
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    await at.hub.create(SHOP, BINDERS, grants)
    found = {
        (await at.refusal("bob", SHOP, name, f"/api/v1/namespaces/{namespace}/pods"))[1].replace(
            name, "EDGE"
        )
        for name in ("root:imw:guilder", "root:imw:no-such", "root:nowhere:florin")
        for namespace in ("books",)
    }
    assert len(found) == 1


@in_tunnel_hub
async def test_a_name_that_means_several_edges_is_refused_with_their_paths(at: TunnelHub) -> None:
    shop = await at.hub.workspace("root", "shop", "universal", admin="alice")
    for inventory in (IMW, ELSEWHERE):
        edge = await (await at.hub.edge("florin", inventory=inventory)).join()
        await at.placed(edge, "books", shop)
    code, text = await at.refusal("alice", shop, "florin", "/api/v1/namespaces/books/pods")
    assert (code, text) == (
        400,
        'edge "florin": there are several of this name: root:imw:florin, root:other:florin',
    )


@in_tunnel_hub
async def test_labels_and_annotations_that_a_tenant_writes_make_nothing_its_own(
    at: TunnelHub,
) -> None:
    edge = await (await at.hub.edge()).join()
    await at.dial(edge)
    shop = await at.hub.workspace("root", "shop", "universal", admin="alice")
    forged = {
        "metadata": {
            "name": "toys",
            "labels": {"edge.kcp.io/projected": "yes"},
            "annotations": {"edge.kcp.io/owner-workspace": shop},
        }
    }
    await at.hub.create(shop, "/api/v1/namespaces", forged, "alice")
    path = "/api/v1/namespaces/toys/pods"
    assert (await at.refusal("alice", shop, "root:imw:florin", path))[0] == 403
    # Nor does a report of the edge, which the edge writes.
    report = {"metadata": {"name": "up", "annotations": {"edge.kcp.io/upsynced": "true"}}}
    reply = await edge.ask("PATCH", "/api/v1/namespaces/up", report)
    assert reply.status >= 400
    assert (await at.refusal("alice", shop, "root:imw:florin", "/api/v1/namespaces/up/pods"))[
        0
    ] == 403


@in_tunnel_hub
async def test_an_operator_gets_404_for_an_edge_that_is_not(at: TunnelHub) -> None:
    code, text = await at.refusal(
        "kcp-admin", IMW, f"{IMW}:nobody", "/api/v1/namespaces/books/pods"
    )
    assert (code, text) == (404, 'synctargets.workload.kcp.io "root:imw:nobody" not found')


@in_tunnel_hub
async def test_nobody_reaches_edges_through_all_workspaces_or_a_view(at: TunnelHub) -> None:
    await at.dial(await (await at.hub.edge()).join())
    for where in ("*", "root:no-such", "system:admin"):
        answer = await at.ask("alice", where, "root:imw:florin", "/api/v1/namespaces/books/pods")
        assert isinstance(answer, Response)
        assert answer.status in (403, 404), where
