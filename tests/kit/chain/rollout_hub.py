"""Rollouts on a real hub: the edge scheduler is real, translator and judge are played by hand."""

from __future__ import annotations

import asyncio
from typing import Any

from pyroaring import BitMap

from skerry.api.edge import (
    CUT_SEQUENCE,
    PLACEMENT_REVISIONS,
    ROLLOUT_APPROVALS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_QUERIES,
)
from skerry.api.objects import Object
from skerry.logic.fleet.rollout.bitmaps import decoded
from skerry.logic.fleet.rollout.state import Verdicts, written_verdicts
from tests.kit.chain.building import equal
from tests.kit.chain.edge_scheduler_hub import Hub

EDGE = "edge.kcp.io/v1alpha1"
WORKLOAD, INVENTORY = "root:shop", "root:imw"
FAST = {
    "pace": {"concurrency": "100%", "maxUnavailable": "100%"},
    "judge": {"minReady": "0s", "deadline": "60s"},
}


class RolloutHub(Hub):
    """A hub with one placement ``web`` and its Rollout."""

    sequence = 0

    async def fleet(self, count: int, **labels: str) -> None:
        """Have edges e1, e2 …, each a Location and a SyncTarget."""
        for number in range(1, count + 1):
            await self.edge(number, **labels)

    async def edge(self, number: int, **labels: str) -> None:
        """Have one more edge."""
        name = f"e{number}"
        await self.target(INVENTORY, name, {"edge": name})
        shown = {"env": "prod", "ring": "canary" if number == 1 else "rest", **labels}
        await self.locate(INVENTORY, name, shown, equal(edge=name))

    async def roll_out(self, **spec: Any) -> None:
        body = {"apiVersion": EDGE, "kind": "Rollout", "metadata": {"name": "web"}}
        await self.at(WORKLOAD).create(ROLLOUTS, {**body, "spec": {**FAST, **spec}})

    async def ask(self, name: str, spec: Object) -> None:
        """Have a StatusQuery beside the Rollout."""
        body = {"apiVersion": EDGE, "kind": "StatusQuery", "metadata": {"name": name}}
        await self.at(WORKLOAD).create(STATUS_QUERIES, {**body, "spec": spec})

    async def edit(self, **spec: Any) -> None:
        await self.at(WORKLOAD).patch(ROLLOUTS, "web", {"spec": spec})

    async def annotate(self, **notes: str) -> None:
        annotations = {f"edge.kcp.io/{key}": value for key, value in notes.items()}
        await self.at(WORKLOAD).patch(ROLLOUTS, "web", {"metadata": {"annotations": annotations}})

    async def cut(self, number: int, **item: Any) -> None:
        """Make a revision, or one that was made before what the workspace has again."""
        self.sequence += 1
        notes = {CUT_SEQUENCE: str(self.sequence)}
        name = f"web-{number}"
        digest = f"{number:064x}"
        one = {"group": "", "resource": "configmaps", "namespace": "shop", "name": "c",
               "digest": digest, **item}  # fmt: skip
        obj = {
            "apiVersion": EDGE,
            "kind": "PlacementRevision",
            "metadata": {"name": name, "annotations": notes},
            "spec": {
                "placement": "web",
                "number": number,
                "digest": digest,
                "items": [one],
                "inputs": {"what": "00"},
                "page": {"number": 1, "of": 1},
            },
        }
        known = {e["metadata"]["name"] for e in (await self.shop.list(PLACEMENT_REVISIONS)).items}
        if name in known:
            patch = {"metadata": {"annotations": notes}}
            await self.shop.patch(PLACEMENT_REVISIONS, name, patch)
        else:
            await self.shop.create(PLACEMENT_REVISIONS, obj)

    async def judge(
        self,
        bad: set[str] | None = None,
        absent: set[str] | None = None,
        pause_seconds: float = 1.0,
    ) -> None:
        """Judge everybody now: those named by their edges are bad or absent, all others good."""
        status = (await self.rollout())["status"]
        slots = {e["syncTargetName"]: e for e in await self.entries() if "slot" in e}
        target = status.get("target")
        there = {n: e["slot"] for n, e in slots.items() if e.get("revision") == target}
        sick, silent = bad or set(), absent or set()
        verdicts = Verdicts(
            status["attempt"],
            good=BitMap(s for n, s in there.items() if n not in sick | silent),
            bad=BitMap(s for n, s in there.items() if n in sick),
            settled=BitMap(e["slot"] for e in slots.values()),
            joined=BitMap(e["slot"] for e in slots.values()),
            absent=BitMap(e["slot"] for n, e in slots.items() if n in silent),
            left=decoded(status.get("departing")) - BitMap(e["slot"] for e in slots.values()),
        )
        patch = {"status": {"verdicts": written_verdicts(verdicts, 0)}}
        await self.shop.patch(ROLLOUTS, "web", patch, subresource="status")
        await asyncio.sleep(pause_seconds)

    @property
    def shop(self) -> Any:
        return self.at(WORKLOAD)

    async def rollout(self) -> Object:
        found: Object = await self.shop.get(ROLLOUTS, "web")
        return found

    async def phase(self) -> str:
        return str(((await self.rollout()).get("status") or {}).get("phase"))

    async def conditions(self) -> dict[str, tuple[str, str]]:
        found = (await self.rollout())["status"]["conditions"]
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    async def entries(self) -> list[Object]:
        slices = (await self.shop.list(SINGLE_PLACEMENT_SLICES)).items
        return [each for piece in slices for each in piece["destinations"]]

    async def revisions(self) -> dict[str, int]:
        """Return the revision that each edge was given."""
        return {e["syncTargetName"]: e.get("revision", 0) for e in await self.entries()}

    async def approve(self, name: str) -> None:
        patch = {"status": {"approved": True, "by": "bob"}}
        await self.shop.patch(ROLLOUT_APPROVALS, name, patch, subresource="status")
        await asyncio.sleep(1)
