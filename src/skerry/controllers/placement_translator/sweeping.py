"""Removing revisions and contents that nobody needs; once an hour, by whoever leads.

What there is, is listed from the server, not from caches: a content that was named a moment ago
must not go because the name has not come back yet.

Contents are listed before the revisions that name them. One that is written in between is not in
the list, and one that is named in between is found to be named; the other order would have a
content in hand that an older list does not name. A content goes only when two sweeps have found it
unnamed, an hour apart: a cut that failed between contents and manifest has that long to be tried
again. What was found before is in memory: after a restart, or when somebody else has led, that hour
begins again.

Numbers that are in use are read from caches, which lag by a moment. What a slice has just begun to
name is, unless it is a return to an old one, among the newest ten of its placement, which stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from skerry.api.edge import PLACEMENT_REVISIONS, REVISION_CONTENTS, placement_of_slice
from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.kit.log import Logger
from skerry.logic.fleet.revision.objects import RevisionPage, read_page
from skerry.logic.fleet.revision.retention import (
    SWEEP_SECONDS,
    ContentKey,
    PlacementKey,
    SweepPlan,
    sweep,
)
from skerry.logic.machinery.plan import Action, Delete, Plan, Target
from skerry.runtime.client import Client, Selection, cluster_of
from skerry.runtime.execute import Executor
from skerry.runtime.transport import TransportError

_METADATA = Selection(metadata_only=True)
_log = Logger("placement-translator")


def used_numbers(
    slices: Iterable[Object], rollouts: Iterable[Object]
) -> dict[PlacementKey, set[int]]:
    """Return the revisions that slots and Rollouts name, by placement."""
    used: dict[PlacementKey, set[int]] = {}
    for piece in slices:
        key = (cluster_of(piece), placement_of_slice(piece))
        numbers = (each.get("revision") or 0 for each in piece.get("destinations") or ())
        used.setdefault(key, set()).update(filter(None, numbers))
    for each in rollouts:
        spec, status = each.get("spec") or {}, each.get("status") or {}
        named = (
            (spec.get("force") or {}).get("revision"),
            status.get("target"),
            status.get("stable"),
            (status.get("failure") or {}).get("revision"),
        )
        key = (cluster_of(each), each["metadata"]["name"])
        used.setdefault(key, set()).update(number for number in named if number)
    return used


def sweep_actions(plan: SweepPlan, contents: Mapping[ContentKey, str]) -> list[Action]:
    """Return the deletions of a plan: revisions first. *contents* are UIDs."""
    found: list[Action] = [
        Delete(
            Target(PLACEMENT_REVISIONS, page.name, cluster=cluster), "RevisionSurplus", uid=page.uid
        )
        for cluster, page in plan.pages
    ]
    found += [
        Delete(
            Target(REVISION_CONTENTS, name, cluster=cluster),
            "ContentUnnamed",
            uid=contents[cluster, name],
        )
        for cluster, name in plan.contents
    ]
    return found


class Sweeper:
    """Sweeps once an hour, for as long as it runs."""

    def __init__(
        self,
        listing: Client,
        executor: Executor,
        writing: asyncio.Lock,
        slices: Callable[[], Iterable[Object]],
        rollouts: Callable[[], Iterable[Object]],
    ) -> None:
        """*listing* reads across all workspaces; *writing* keeps cuts out."""
        self._writing = writing
        self._listing = listing
        self._executor = executor
        self._slices = slices
        self._rollouts = rollouts
        self._unnamed: Mapping[ContentKey, float] = {}

    async def run(self) -> None:
        """Sweep until cancelled; what was found before somebody else led does not count."""
        self._unnamed = {}
        while True:
            try:
                async with self._writing:
                    await self.sweep()
            except (ApiError, TransportError) as error:
                _log.warning("revisions not swept", error=error)
            await self._listing.clock.sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Remove what may go now; each object as it was listed, by UID.

        The first failure ends the sweep. What is left is found by the next one.
        """
        contents = {
            (cluster_of(each), each["metadata"]["name"]): each["metadata"]["uid"]
            for each in (await self._listing.list(REVISION_CONTENTS, _METADATA)).items
        }
        pages: dict[ClusterName, list[RevisionPage]] = {}
        for each in (await self._listing.list(PLACEMENT_REVISIONS)).items:
            pages.setdefault(cluster_of(each), []).append(read_page(each))
        used = used_numbers(self._slices(), self._rollouts())
        now = self._listing.clock.monotonic()
        plan = sweep(pages, contents, used, self._unnamed, now)
        self._unnamed = plan.unnamed
        await self._executor.execute(Plan(sweep_actions(plan, contents)))
