"""Random doings of owners, scheduler, translator and syncers, and what should come of them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS, SINGLE_PLACEMENT_SLICES, STATUS_SUMMARIES
from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import destinations_in
from skerry.logic.fleet.summary.content import MAX_DETAILS, Subject, summary_content, summary_name
from skerry.logic.fleet.summary.report import ABSENT, Report, report_of
from skerry.logic.fleet.summary.standing import Detail
from skerry.logic.fleet.summary.tally import total
from skerry.runtime.client import Selection
from tests.kit.chain.summarizer_hub import DEPLOYMENTS, NAMESPACES, Hub, deployment, running

EDGES = ["florin", "guilder", "krone"]
SPACES = ["shop", "bank"]
NAMES = ["web", "api"]
PLACEMENTS = ["p", "q"]


class History:
    """Does one random thing at a time; whatever is impossible at the moment is left."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def begin(self) -> None:
        """Place everything everywhere, so that there is something to change."""
        for space in SPACES:
            await self._hub.namespace(space, go="yes")
            for name in NAMES:
                await self._hub.owner.create(DEPLOYMENTS, deployment(name), space)
                for edge in EDGES:
                    await self._hub.project(edge, DEPLOYMENTS, deployment(name), space)
        for name in PLACEMENTS:
            await self._hub.place(name, *EDGES)

    async def step(self) -> None:
        doings = (
            *[self._create] * 3,
            *[self._place] * 3,
            *[self._copy] * 4,
            *[self._report] * 6,
            *[self._apply] * 3,
            self._lose,
            self._reslice,
            self._relabel,
            self._delete,
            self._withdraw,
        )
        with suppress(ApiError):
            await self._one(doings)()

    def _one(self, found: Any) -> Any:
        return found[int(self._hub.ids.fraction() * len(found))]

    async def _create(self) -> None:
        await self._hub.owner.create(DEPLOYMENTS, deployment(self._one(NAMES)), self._one(SPACES))

    async def _delete(self) -> None:
        await self._hub.owner.delete(DEPLOYMENTS, self._one(NAMES), self._one(SPACES))

    async def _place(self) -> None:
        await self._hub.place(self._one(PLACEMENTS), *self._some(EDGES))

    async def _withdraw(self) -> None:
        name = self._one(PLACEMENTS)
        await self._hub.owner.delete(EDGE_PLACEMENTS, name)
        await self._hub.owner.delete(SINGLE_PLACEMENT_SLICES, name)

    async def _reslice(self) -> None:
        await self._hub.reslice(self._one(PLACEMENTS), *self._some(EDGES))

    async def _relabel(self) -> None:
        labels = {"go": self._one(["yes", "yes", "yes", "no"])}
        await self._hub.owner.patch(NAMESPACES, self._one(SPACES), {"metadata": {"labels": labels}})

    async def _copy(self) -> None:
        copy = deployment(self._one(NAMES))
        await self._hub.project(self._one(EDGES), DEPLOYMENTS, copy, self._one(SPACES))

    async def _lose(self) -> None:
        mailbox = self._hub.mailbox(self._one(EDGES))
        await mailbox.delete(DEPLOYMENTS, self._one(NAMES), self._one(SPACES))

    async def _apply(self) -> None:
        await self._hub.applied(self._one(EDGES), DEPLOYMENTS, self._one(NAMES), self._one(SPACES))

    async def _report(self) -> None:
        status = running(self._one([1, 2, 3]), self._one([None, 0]))
        await self._hub.report(
            self._one(EDGES), DEPLOYMENTS, self._one(NAMES), self._one(SPACES), status
        )

    def _some(self, found: list[str]) -> list[str]:
        return [each for each in found if self._hub.ids.fraction() < 0.6]

    # -- what should come of it --------------------------------------------------------------

    async def found(self) -> dict[tuple[str, str], Object]:
        items = (await self._hub.owner.list(STATUS_SUMMARIES)).items
        skipped = ("apiVersion", "kind", "metadata")
        return {
            (each["metadata"]["namespace"], each["metadata"]["name"]): {
                name: value for name, value in each.items() if name not in skipped
            }
            for each in items
        }

    async def expected(self) -> dict[tuple[str, str], Object]:
        """Compute every summary in one pass over what the hub holds."""
        hub, wanted = self._hub, dict[tuple[str, str], Object]()
        slices = (await hub.owner.list(SINGLE_PLACEMENT_SLICES)).items
        chosen = {
            each["metadata"]["name"]
            for each in (await hub.owner.list(NAMESPACES)).items
            if (each["metadata"].get("labels") or {}).get("go") == "yes"
        }
        sources = (await hub.owner.list(DEPLOYMENTS)).items
        for placement in (await hub.owner.list(EDGE_PLACEMENTS)).items:
            name = placement["metadata"]["name"]
            where = [d for s in slices if s["metadata"]["name"] == name for d in destinations_in(s)]
            for source in sources:
                space = source["metadata"]["namespace"]
                if space in chosen:
                    subject = _subject(space, source["metadata"]["name"])
                    reports = [Detail(d, await self._reported(d, subject)) for d in where]
                    content = summary_content(name, subject, total(reports, MAX_DETAILS))
                    wanted[(space, summary_name(name, subject))] = content
        return wanted

    async def _reported(self, destination: Destination, subject: Subject) -> Report:
        mailbox = self._hub.mailbox(destination.sync_target)
        found = (await mailbox.list(DEPLOYMENTS, Selection(namespace=subject.namespace))).items
        for copy in found:
            if copy["metadata"]["name"] == subject.name:
                return report_of("apps", "Deployment", copy)
        return ABSENT


def _subject(space: str, name: str) -> Subject:
    return Subject("apps", "v1", "deployments", "Deployment", space, name)
