"""Reads Rollouts of the current workspace and asks for their next steps, for the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from skerry.api.edge import (
    ABORT,
    ACCEPT,
    PLACEMENT_REVISIONS,
    PROMOTE,
    ROLLOUT_APPROVALS,
    ROLLOUTS,
    UNDO,
)
from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.app.edge_environment import ClientFlags, access_by, endpoint
from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.rollout.state import approval_name
from skerry.runtime.client import Client, Selection

_UNDER_WAY = ("Progressing", "Soaking", "Awaiting", "Paused")


@asynccontextmanager
async def rollouts(settings: HubSettings) -> AsyncIterator[Rollouts]:
    """Open the current workspace of a hub."""
    here = endpoint("espw", settings.paths(), ClientFlags(context=settings.context))
    if not here.workspace:
        raise Unanswered("the current context names no workspace; choose one with kubectl ws")
    clock = SystemClock()
    access, transports = access_by({"espw": here}, clock, "skerry/rollout")
    try:
        yield Rollouts(access.clients["espw"].at("", here.workspace), here.workspace, clock)
    finally:
        for transport in transports:
            await transport.close()


class Rollouts:
    """The Rollouts of one workspace."""

    def __init__(self, client: Client, workspace: str, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self.workspace = workspace

    async def get(self, name: str) -> Object:
        """Return a Rollout."""
        try:
            return await self._client.get(ROLLOUTS, name)
        except NotFound as error:
            raise Unanswered(f"{self.workspace} has no Rollout {name}") from error

    async def revisions(self, name: str) -> list[Object]:
        """Return the revisions of a placement."""
        found = (await self._client.list(PLACEMENT_REVISIONS)).items
        return [each for each in found if each["spec"]["placement"] == name]

    async def follow(self, name: str) -> AsyncIterator[Object]:
        """Yield a Rollout as it is, and whenever it changes."""
        rollout = await self.get(name)
        while True:
            yield rollout
            version = str(rollout["metadata"]["resourceVersion"])
            only = Selection(fields=f"metadata.name={name}")
            async with self._client.watch(ROLLOUTS, only, resource_version=version) as events:
                async for event in events:
                    if event.kind == "DELETED":
                        raise Unanswered(f"Rollout {name} was deleted")
                    if event.kind in ("ADDED", "MODIFIED"):
                        rollout = event.object
                        break

    # -- what people ask for -------------------------------------------------------------------

    async def set_paused(self, name: str, *, paused: bool) -> str:
        """Hold a rollout, or let it go on; one that failed goes on with what is bad accepted."""
        rollout = await self.get(name)
        status = rollout.get("status") or {}
        patch: dict[str, Any] = {"spec": {"paused": paused}}
        text = "paused" if paused else "resumed"
        if not paused and status.get("phase") == "Paused":
            bad = int((status.get("counts") or {}).get("bad") or 0)
            patch["metadata"] = {"annotations": {ACCEPT: f"{status.get('target')}@{bad}"}}
            text = f"resumed with {bad} bad destinations accepted"
        await self._client.patch(ROLLOUTS, name, patch)
        return text

    async def abort(self, name: str) -> str:
        """Give the target up: everybody returns to the stable revision."""
        target = self._target(await self.get(name))
        await self._annotate(name, {ABORT: str(target)})
        return f"revision {target} is given up"

    async def promote(self, name: str) -> str:
        """Let the present wave pass without waiting."""
        rollout = await self.get(name)
        target = self._target(rollout)
        wave = ((rollout.get("status") or {}).get("wave") or {}).get("name") or ""
        await self._annotate(name, {PROMOTE: f"{target}/{wave}"})
        return f"wave {wave or '(everybody)'} of revision {target} passes"

    async def undo(self, name: str, number: int, reason: str) -> str:
        """Go back to a revision: in waves, or with a reason everywhere at once."""
        numbers = sorted(int(each["spec"]["number"]) for each in await self.revisions(name))
        if number not in numbers:
            known = ", ".join(map(str, numbers)) or "none"
            raise Unanswered(f"there is no revision {number} of {name}; there are: {known}")
        await self.get(name)
        if reason:
            force = {"revision": number, "reason": reason}
            await self._client.patch(ROLLOUTS, name, {"spec": {"force": force}})
            return f"revision {number} is forced everywhere; remove spec.force to go on from there"
        # An abort of that revision is withdrawn by asking for it.
        await self._annotate(name, {UNDO: f"{number}@{numbers[-1]}", ABORT: None})
        return f"revision {number} is rolled out until a newer one than {numbers[-1]} is cut"

    async def retry(self, name: str) -> str:
        """Try a revision again that failed."""
        rollout = await self.get(name)
        failure = (rollout.get("status") or {}).get("failure")
        if not failure:
            raise Unanswered(f"Rollout {name} has not failed")
        number = int(failure["revision"])
        [found] = [
            each["metadata"]["name"]
            for each in await self.revisions(name)
            if each["spec"]["number"] == number and each["spec"]["page"]["number"] == 1
        ] or [""]
        if not found:
            raise Unanswered(f"revision {number} of {name} is gone")
        await self._annotate(name, {ABORT: None})
        patch = {"status": {"verdict": "Candidate"}}
        await self._client.patch(PLACEMENT_REVISIONS, found, patch, subresource="status")
        return f"revision {number} is tried again"

    async def approve(self, name: str, wave: str, message: str, by: str) -> str:
        """Approve that a rollout goes on after a wave; the present one unless another is named."""
        rollout = await self.get(name)
        status = rollout.get("status") or {}
        named = wave or (status.get("wave") or {}).get("name") or ""
        asked = approval_name(name, self._target(rollout), named)
        patch: dict[str, Any] = {
            "approved": True,
            "time": rfc3339(self._clock.now()),
            **({"message": message} if message else {}),
            **({"by": by} if by else {}),
        }
        try:
            await self._client.patch(
                ROLLOUT_APPROVALS, asked, {"status": patch}, subresource="status"
            )
        except NotFound as error:
            text = f"Rollout {name} asks for no approval after wave {named or '(everybody)'}"
            raise Unanswered(f"{text}; it is {status.get('phase')}") from error
        return f"{asked} is approved"

    def _target(self, rollout: Object) -> int:
        status = rollout.get("status") or {}
        if status.get("phase") not in _UNDER_WAY:
            name = rollout["metadata"]["name"]
            raise Unanswered(f"Rollout {name} is {status.get('phase')}: nothing is under way")
        return int(status["target"])

    async def _annotate(self, name: str, notes: dict[str, str | None]) -> None:
        await self._client.patch(ROLLOUTS, name, {"metadata": {"annotations": notes}})
