"""The judge on a real hub; scheduler, translator and syncer are played by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pyroaring import BitMap

from skerry.api.edge import (
    PLACEMENT_REVISIONS,
    REVISIONS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
    SYNC_ERROR,
    SYNCER_CONFIG_NAME,
    SYNCER_CONFIGS,
)
from skerry.api.errors import AlreadyExists
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.summarizer.verdicts import (
    ObservedVerdicts,
    by_revision,
    decide_verdicts,
    lean_manifest,
)
from skerry.logic.fleet.rollout.bitmaps import decoded
from skerry.logic.fleet.rollout.state import Batch, State, moment, written
from skerry.logic.machinery.plan import NOTHING, Patch
from tests.kit.chain.summarizer_hub import DEPLOYMENTS, Hub, deployment, running
from tests.kit.sim.loop import virtual

EDGE = "edge.kcp.io/v1alpha1"
DOWN = {**running(), "availableReplicas": 0, "readyReplicas": 0}


class JudgedHub(Hub):
    """A hub with a placement ``web`` of one Deployment, its revisions and its Rollout."""

    async def begin(self, **judge: Any) -> None:
        await self.namespace("shop", go="yes")
        await self.owner.create(DEPLOYMENTS, deployment("web"), "shop")
        await self.place("web", "e1", "e2")
        await self.assign(e1=41, e2=41)
        for number in (41, 42):
            items = [{"group": "apps", "resource": "deployments", "namespace": "shop",
                      "name": "web", "digest": "ab"},
                     # Of the mailbox only: no edge will ever report it.
                     {"group": "apis.kcp.io", "resource": "apibindings", "name": "b",
                      "digest": "ab"}]  # fmt: skip
            spec = {"placement": "web", "number": number, "digest": f"{number}", "items": items,
                    "inputs": {"what": "00"}, "page": {"number": 1, "of": 1}}  # fmt: skip
            body = {"apiVersion": EDGE, "kind": "PlacementRevision", "spec": spec}
            name = {"metadata": {"name": f"web-{number}"}}
            await self.owner.create(PLACEMENT_REVISIONS, {**body, **name})
        for edge in ("e1", "e2"):
            await self.project(edge, DEPLOYMENTS, deployment("web"), "shop")
            await self.applied(edge, DEPLOYMENTS, "web", "shop")
            await self.report(edge, DEPLOYMENTS, "web", "shop", running())
            await self.note(edge, 41)
        spec = {"judge": {"minReady": "5s", "deadline": "60s", **judge}}
        body = {"apiVersion": EDGE, "kind": "Rollout", "metadata": {"name": "web"}}
        await self.owner.create(ROLLOUTS, {**body, "spec": spec})

    async def assign(self, **revisions: int) -> None:
        entries = [
            {**self.destination(edge), "slot": int(edge[1:]), "revision": revision}
            for edge, revision in revisions.items()
        ]
        await self.owner.patch(SINGLE_PLACEMENT_SLICES, "web", {"destinations": entries})

    async def note(self, edge: str, revision: int) -> None:
        cluster = await self.cluster_of("root:wmw")
        notes = {"annotations": {REVISIONS: f"{cluster}/web={revision}"}}
        body = {"apiVersion": EDGE, "kind": "SyncerConfig", "spec": {}}
        try:
            metadata = {"name": SYNCER_CONFIG_NAME, **notes}
            await self.mailbox(edge).create(SYNCER_CONFIGS, {**body, "metadata": metadata})
        except AlreadyExists:
            patch = {"metadata": notes}
            await self.mailbox(edge).patch(SYNCER_CONFIGS, SYNCER_CONFIG_NAME, patch)

    async def start(self, attempt: int, *slots: int) -> None:
        """Say in the status that a rollout of 42 is under way and these are in flight."""
        batch = Batch(moment(self.clock.now()), BitMap(slots))
        state = State("Progressing", attempt, 42, "42", 41, 1, "canary", in_flight=(batch,))
        status = {key: value for key, value in written(state).items() if value is not None}
        await self.owner.patch(ROLLOUTS, "web", {"status": status}, subresource="status")

    async def verdicts(self) -> dict[str, Any]:
        found = (await self.owner.get(ROLLOUTS, "web")).get("status") or {}
        return {
            name: sorted(decoded(value)) if isinstance(value, str) else value
            for name, value in (found.get("verdicts") or {}).items()
        }


@asynccontextmanager
async def judged(**judge: Any) -> AsyncIterator[JudgedHub]:
    hub = JudgedHub()
    async with hub.running(["e1", "e2"]):
        await hub.begin(**judge)
        async with hub.summarizing():
            await asyncio.sleep(5)
            yield hub


@virtual
async def test_before_anything_moves_everybody_is_available_and_settled() -> None:
    async with judged() as hub:
        found = await hub.verdicts()
        assert (found["settled"], found["unavailable"], found["good"]) == ([1, 2], [], [])


@virtual
async def test_a_destination_is_good_when_it_was_well_at_the_target_for_long_enough() -> None:
    async with judged() as hub:
        await hub.start(3, 1)
        await hub.assign(e1=42, e2=41)
        await asyncio.sleep(2)
        assert (await hub.verdicts())["settled"] == [2]
        await hub.note("e1", 42)
        await asyncio.sleep(3)
        assert (await hub.verdicts())["good"] == []
        await asyncio.sleep(4)
        found = await hub.verdicts()
        assert (found["good"], found["attempt"]) == ([1], 3)


@virtual
async def test_a_destination_that_is_unwell_is_bad_at_the_deadline_with_its_reason() -> None:
    async with judged() as hub:
        await hub.start(3, 1)
        await hub.assign(e1=42, e2=41)
        await hub.report("e1", DEPLOYMENTS, "web", "shop", DOWN)
        await hub.note("e1", 42)
        await asyncio.sleep(30)
        found = await hub.verdicts()
        assert (found["bad"], found["unavailable"]) == ([], [1])
        await asyncio.sleep(40)
        found = await hub.verdicts()
        assert found["bad"] == [1]
        [failure] = found["failures"]
        assert (failure["location"], failure["reason"]) == ("loc-e1", "DeadlineExceeded")
        assert "shop/web" in failure["message"]


@virtual
async def test_a_refusal_that_lasts_is_bad_at_once() -> None:
    async with judged() as hub:
        await hub.start(3, 1)
        await hub.assign(e1=42, e2=41)
        notes = {"metadata": {"annotations": {SYNC_ERROR: "Rejected: no such field"}}}
        await hub.mailbox("e1").patch(DEPLOYMENTS, "web", notes, "shop")
        await hub.note("e1", 42)
        await asyncio.sleep(3)
        assert (await hub.verdicts())["bad"] == [1]


@virtual
async def test_fail_when_reads_the_numbers_of_reports() -> None:
    async with judged(failWhen="reports.exists(r, r.readyReplicas > 2)") as hub:
        await hub.start(3, 1)
        await hub.assign(e1=42, e2=41)
        await hub.note("e1", 42)
        await hub.report("e1", DEPLOYMENTS, "web", "shop", {**running(), "readyReplicas": 3})
        await asyncio.sleep(3)
        found = await hub.verdicts()
        assert (found["bad"], found["failures"][0]["reason"]) == ([1], "FailWhen")


@virtual
async def test_a_silent_edge_is_absent_and_comes_back() -> None:
    async with judged() as hub:
        await hub.beat("e2", seconds=10)
        await asyncio.sleep(100)
        assert (await hub.verdicts())["absent"] == []
        await asyncio.sleep(300)
        assert (await hub.verdicts())["absent"] == [2]
        await hub.beat("e2")
        await asyncio.sleep(3)
        assert (await hub.verdicts())["absent"] == []


@virtual
async def test_verdicts_survive_a_restart_of_the_judge() -> None:
    hub = JudgedHub()
    async with hub.running(["e1", "e2"]):
        await hub.begin(minReady="0s")
        await hub.start(3, 1)
        await hub.assign(e1=42, e2=41)
        await hub.note("e1", 42)
        async with hub.summarizing():
            await asyncio.sleep(5)
            assert (await hub.verdicts())["good"] == [1]
        await hub.report("e1", DEPLOYMENTS, "web", "shop", DOWN)
        async with hub.summarizing():
            await asyncio.sleep(5)
            assert (await hub.verdicts())["good"] == [1]


@virtual
async def test_a_rollout_that_is_gone_is_judged_no_more_and_a_new_one_is_from_the_start() -> None:
    async with judged() as hub:
        await hub.owner.delete(ROLLOUTS, "web")
        await hub.report("e1", DEPLOYMENTS, "web", "shop", DOWN)
        await asyncio.sleep(5)
        body = {"apiVersion": EDGE, "kind": "Rollout", "metadata": {"name": "web"}, "spec": {}}
        await hub.owner.create(ROLLOUTS, body)
        await asyncio.sleep(5)
        found = await hub.verdicts()
        assert (found["settled"], found["unavailable"]) == ([1, 2], [1])


@virtual
async def test_who_departs_has_left_when_its_mailbox_has_nothing_of_the_placement() -> None:
    async with judged() as hub:
        state = State("Completed", 3, 41, "41", 41, departing=BitMap([2]))
        status = {key: value for key, value in written(state).items() if value is not None}
        await hub.owner.patch(ROLLOUTS, "web", {"status": status}, subresource="status")
        await hub.assign(e1=41)
        await asyncio.sleep(5)
        found = await hub.verdicts()
        assert (found["left"], found["settled"]) == ([], [1])
        config = {"metadata": {"annotations": {REVISIONS: None}}}
        await hub.mailbox("e2").patch(SYNCER_CONFIGS, SYNCER_CONFIG_NAME, config)
        # What changes at a mailbox without a slot enqueues nobody; the next reconcile finds it.
        await hub.report("e1", DEPLOYMENTS, "web", "shop", DOWN)
        await asyncio.sleep(5)
        assert (await hub.verdicts())["left"] == [2]


WEB = ObjectRef("c1", "edge.kcp.io", "edgeplacements", "", "web")


def observed(published: Any, verdicts: dict[str, Any], again: float | None) -> ObservedVerdicts:
    return ObservedVerdicts(WEB, published, verdicts, again)


@pytest.mark.parametrize("again", [None, 3.5])
def test_verdicts_that_are_shown_already_are_not_written_again(again: float | None) -> None:
    plan = decide_verdicts(observed({"good": "x"}, {"good": "x"}, again))
    assert plan.actions == NOTHING.actions
    assert plan.requeue_after_seconds == again


@pytest.mark.parametrize("published", [None, {}, {"good": "y"}])
def test_other_verdicts_replace_those_that_are_shown_and_nothing_else(published: Any) -> None:
    plan = decide_verdicts(observed(published, {"good": "x"}, 2.0))
    [patch] = plan.actions
    assert isinstance(patch, Patch)
    assert patch.patch == {"status": {"verdicts": {"good": "x"}}}
    assert (patch.subresource, patch.target.cluster, patch.target.name) == ("status", "c1", "web")
    assert patch.absent_is_fine, "the Rollout may be gone by now"
    assert plan.requeue_after_seconds == 2.0


def test_of_a_revision_is_kept_which_objects_it_is_about() -> None:
    spec = {
        "placement": "web",
        "number": 41,
        "digest": "ab",
        "items": [{"group": "apps", "resource": "deployments", "namespace": "shop", "name": "web",
                   "digest": "cd"}, {"resource": "namespaces", "name": "shop"}],
    }  # fmt: skip
    metadata = {"name": "web-41", "uid": "u", "annotations": {CLUSTER_ANNOTATION: "c1"}}
    lean = lean_manifest({"metadata": metadata, "spec": spec})
    assert lean["spec"] == {
        "placement": "web",
        "number": 41,
        "items": [["apps", "deployments", "shop", "web"], ["", "namespaces", "", "shop"]],
    }
    assert by_revision(lean) == (("c1", "web", 41),)
    empty = lean_manifest({"metadata": metadata, "spec": {"placement": "web", "number": 42}})
    assert empty["spec"]["items"] == []
