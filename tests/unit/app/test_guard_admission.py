"""A hub answers the request that would exceed a guard: warns, asks for a token, refuses."""

from __future__ import annotations

import re
from pathlib import Path

from tests.kit.server.guarded import (
    CONFIRM,
    EDGE,
    GUARDS,
    NAMESPACES,
    PLACEMENTS,
    asked,
    book,
    furnished,
    guard,
    patch,
    placement,
    relabel,
)
from tests.kit.server.harness import Reply
from tests.kit.server.hub import LOCATIONS, WORKSPACES

_REMOVED = {"of": "DestinationsRemoved", "max": 2, "window": "10m"}


def token(reply: Reply) -> str:
    found = re.search(rf"{CONFIRM}=([0-9a-f]+)", reply.body["message"])
    assert found is not None, reply.body
    return found.group(1)


async def test_the_story(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[_REMOVED]) as hub:
        assert (await relabel(hub, 0)).status == 200
        assert (await relabel(hub, 1)).status == 200
        assert len(await book(hub)) == 2
        # Again, and back and forth: a destination counts once.
        assert (await relabel(hub, 1, "prod")).status == 200
        assert (await relabel(hub, 1)).status == 200
        assert len(await book(hub)) == 2
        refused = await relabel(hub, 2)
        assert refused.status == 409
        assert refused.body["reason"] == "Conflict"
        assert refused.body["message"].startswith(
            'locations.scheduling.kcp.io "l2": PlacementGuard fleet: this would bring removals of '
            "placement root:shop|web to 3 of 4 destinations within 10m (budget 2). To do it all "
            "the same, annotate the Location with edge.kcp.io/confirm="
        )
        live = await hub.get("root:imw", f"{LOCATIONS}/l2")
        assert live["metadata"]["labels"]["env"] == "prod"
        # A token for another change, or a wrong one, gets the right one again.
        path = f"{LOCATIONS}/l3"
        wrong = {"labels": {"env": "test"}, "annotations": {CONFIRM: token(refused)}}
        assert (await patch(hub, "root:imw", path, wrong)).status == 409
        # With its own it passes, and the annotation is used up.
        path = f"{LOCATIONS}/l2"
        right = {"labels": {"env": "test"}, "annotations": {CONFIRM: token(refused)}}
        passed = await patch(hub, "root:imw", path, right)
        assert passed.status == 200, passed.body
        assert CONFIRM not in passed.body["metadata"].get("annotations", {})
        assert [each.get("by") for each in await book(hub)] == [None, None, "Confirm"]
        # Once: back, and the same change with the same token.
        assert (await relabel(hub, 2, "prod")).status == 200
        again = await patch(hub, "root:imw", path, right)
        assert again.status == 409
        assert token(again) != token(refused)


async def test_a_dry_run_warns_and_charges_nothing(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[{**_REMOVED, "max": 0}]) as hub:
        path = f"/clusters/root:imw{LOCATIONS}/l0?dryRun=All"
        body = {"metadata": {"labels": {"env": "test"}}}
        reply = await asked(hub, "kcp-admin", "PATCH", path, body)
        assert reply.status == 200, reply.body
        assert any(name.lower() == "warning" for name, _ in reply.headers)
        assert await book(hub) == []


async def test_who_bypasses_passes_and_what_observes_or_warns_only_warns(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[{**_REMOVED, "max": 0}]) as hub:
        assert (await relabel(hub, 0)).status == 409
        assert (await relabel(hub, 0, user="carol-token")).status == 200
        assert [each["by"] for each in await book(hub)] == ["Bypass"]
    async with furnished(
        tmp_path / "2", mode="Observe", budgets=[{**_REMOVED, "max": 0, "action": "Deny"}]
    ) as hub:
        reply = await relabel(hub, 0)
        assert reply.status == 200
        assert any(name.lower() == "warning" for name, _ in reply.headers)


async def test_deny_refuses_and_an_edit_of_the_placement_counts_too(tmp_path: Path) -> None:
    async with furnished(
        tmp_path, budgets=[{"of": "DestinationsRemoved", "max": 3, "action": "Deny"}]
    ) as hub:
        assert (await relabel(hub, 0)).status == 200
        spec = placement("none")["spec"]
        reply = await patch(hub, "root:shop", f"{PLACEMENTS}/web", {}, spec=spec)
        assert reply.status == 403
        assert "budget 3" in reply.body["message"]
        gone = await asked(hub, "kcp-admin", "DELETE", f"/clusters/root:shop{PLACEMENTS}/web")
        assert gone.status == 403


async def test_deletion_of_a_placement_asks_for_the_token_on_the_object(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[_REMOVED]) as hub:
        path = f"{PLACEMENTS}/web"
        refused = await asked(hub, "kcp-admin", "DELETE", f"/clusters/root:shop{path}")
        assert refused.status == 409
        noted = await patch(hub, "root:shop", path, {"annotations": {CONFIRM: token(refused)}})
        assert noted.status == 200
        gone = await asked(hub, "kcp-admin", "DELETE", f"/clusters/root:shop{path}")
        assert gone.status == 200, gone.body


async def test_additions_count_where_a_budget_says_so(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[{"of": "DestinationsAdded", "max": 3}]) as hub:
        more = placement()
        more["metadata"] = {"name": "more"}
        reply = await asked(hub, "kcp-admin", "POST", f"/clusters/root:shop{PLACEMENTS}", more)
        assert reply.status == 409
        assert "additions of placement root:shop|more to 6" in reply.body["message"]


async def test_nobody_loosens_a_guard_without_bypass(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[_REMOVED]) as hub:
        where, path = "root:espw", f"{GUARDS}/fleet"
        for user, status in (("kcp-admin", 403), ("carol-token", 200)):
            spec = {"budgets": [{**_REMOVED, "max": 100}]}
            reply = await patch(hub, where, path, {}, user, spec=spec)
            assert reply.status == status, reply.body
        stricter = {"budgets": [{**_REMOVED, "max": 1}]}
        assert (await patch(hub, where, path, {}, spec=stricter)).status == 200
        deleted = await asked(hub, "kcp-admin", "DELETE", f"/clusters/{where}{path}")
        assert deleted.status == 403
        assert "incident-commanders" in deleted.body["message"]
        gone = await asked(hub, "carol-token", "DELETE", f"/clusters/{where}{path}")
        assert gone.status == 200
        assert (await relabel(hub, 0)).status == 200
        assert await book(hub) == []


async def test_protected_locations_and_namespaces_ask(tmp_path: Path) -> None:
    protect = [
        {"kind": "Location", "names": ["l1"], "against": ["Delete", "Relabel"]},
        {"kind": "Namespace", "names": ["shop"], "against": ["Deselect"]},
    ]
    async with furnished(tmp_path, protect=protect) as hub:
        assert (await relabel(hub, 0)).status == 200
        reply = await relabel(hub, 1)
        assert reply.status == 409
        assert "PlacementGuard fleet protects Location l1" in reply.body["message"]
        space = {"apiVersion": "v1", "kind": "Namespace"}
        metadata = {"name": "shop", "labels": {"app": "web"}}
        await hub.create("root:shop", NAMESPACES, {**space, "metadata": metadata})
        path = f"{NAMESPACES}/shop"
        assert (await patch(hub, "root:shop", path, {"labels": {"x": "y"}})).status == 200
        refused = await patch(hub, "root:shop", path, {"labels": {"app": None}})
        assert refused.status == 409
        assert "protects Namespace shop" in refused.body["message"]


async def test_labels_of_a_workspace_count_where_a_placement_looks_at_them(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[{**_REMOVED, "max": 0}]) as hub:
        labels = {"labels": {"tier": "a"}}
        assert (await patch(hub, "root", f"{WORKSPACES}/imw", labels, "carol-token")).status == 200
        picky = placement()
        picky["metadata"] = {"name": "picky"}
        picky["spec"]["locationWorkspaceSelector"] = {"matchLabels": {"tier": "a"}}
        await hub.create("root:shop", PLACEMENTS, picky)
        reply = await patch(hub, "root", f"{WORKSPACES}/imw", {"labels": {"tier": "b"}})
        assert reply.status == 409
        assert "placement root:shop|picky" in reply.body["message"]


async def test_without_guards_nothing_is_asked_or_kept(tmp_path: Path) -> None:
    async with furnished(tmp_path) as hub:
        for number in range(6):
            assert (await relabel(hub, number)).status == 200
        assert await book(hub) == []


async def test_deleting_a_workspace_counts_what_is_placed_from_it_and_at_it(
    tmp_path: Path,
) -> None:
    async with furnished(tmp_path, budgets=[_REMOVED]) as hub:
        for name, what in (("imw", "removals of placement root:shop|web to 6"), ("shop", "to 6")):
            path = f"{WORKSPACES}/{name}"
            refused = await asked(hub, "kcp-admin", "DELETE", f"/clusters/root{path}")
            assert refused.status == 409, refused.body
            assert what in refused.body["message"]
        noted = await patch(hub, "root", path, {"annotations": {CONFIRM: token(refused)}})
        assert noted.status == 200
        assert (await asked(hub, "kcp-admin", "DELETE", f"/clusters/root{path}")).status == 200


async def test_who_takes_off_the_finalizer_of_guards_deletes(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[_REMOVED]) as hub:
        path = f"{PLACEMENTS}/web"
        finalizers = {"finalizers": ["edge.kcp.io/guard", "example.io/own"]}
        assert (await patch(hub, "root:shop", path, finalizers)).status == 200
        gone = await asked(hub, "carol-token", "DELETE", f"/clusters/root:shop{path}")
        assert gone.status == 200
        freed = {"finalizers": ["example.io/own"]}
        refused = await patch(hub, "root:shop", path, freed)
        assert refused.status == 409, refused.body
        assert "removals of placement root:shop|web to 6" in refused.body["message"]
        assert (await patch(hub, "root:shop", path, freed, "carol-token")).status == 200


async def test_nobody_but_controllers_writes_into_a_book(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[_REMOVED]) as hub:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "dora"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": "dora"}],
        }  # fmt: skip
        bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        await hub.create("root:shop", bindings, role)
        assert (await relabel(hub, 0)).status == 200
        before = await book(hub)
        path = f"{PLACEMENTS}/web/status"
        charge = {"time": "2026-09-01T00:00:00.000000Z", "destinations": "", "by": "Confirm"}
        for forged in ({"charges": [*before, charge]}, {"charges": None}, None):
            status = {"removals": forged}
            reply = await patch(hub, "root:shop", path, {}, "dora-token", status=status)
            assert reply.status == 403, reply.body
            assert "status.removals is kept by the controllers" in reply.body["message"]
        assert await book(hub) == before
        other = {"matchingLocationCount": 5, "specGeneration": 1}
        reply = await patch(hub, "root:shop", path, {}, "dora-token", status=other)
        assert reply.status == 200, reply.body


async def test_a_guard_beside_a_placement_that_is_looser_is_warned_of(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[_REMOVED]) as hub:
        for number, warned in ((100, True), (1, False)):
            looser = guard(budgets=[{**_REMOVED, "max": number}])
            looser["metadata"] = {"name": f"own-{number}"}
            reply = await asked(hub, "kcp-admin", "POST", f"/clusters/root:shop{GUARDS}", looser)
            assert reply.status == 201, reply.body
            texts = [text for name, text in reply.headers if name.lower() == "warning"]
            text = "DestinationsRemoved: PlacementGuard fleet is stricter, and counts"
            assert any(text in each for each in texts) == warned


async def test_who_takes_destinations_from_a_slice_is_asked_like_anybody(tmp_path: Path) -> None:
    async with furnished(tmp_path, budgets=[_REMOVED]) as hub:
        entries = [
            {"cluster": "imw", "locationName": f"l{n}", "syncTargetName": f"t{n}",
             "syncTargetUID": f"u{n}"}
            for n in range(6)
        ]  # fmt: skip
        piece = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "SinglePlacementSlice",
                 "metadata": {"name": "web"}, "destinations": entries}  # fmt: skip
        slices = f"{EDGE}/singleplacementslices"
        await hub.create("root:shop", slices, piece)
        path = f"{slices}/web"
        less = await patch(hub, "root:shop", path, {}, destinations=entries[:5])
        assert less.status == 200, less.body
        refused = await asked(hub, "kcp-admin", "DELETE", f"/clusters/root:shop{path}")
        assert refused.status == 409, refused.body
        assert "removals of placement root:shop|web to 6" in refused.body["message"]
        assert len(await book(hub)) == 1
