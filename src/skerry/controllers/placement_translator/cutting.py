"""Cutting revisions of placements with a Rollout: contents first, then the manifest.

A cut is due when what a placement sends has been quiet (``activity``). Then all of it is looked at,
at one moment of the feeds; if it is what the revision cut last has, nothing is written. If it is
what an earlier one has, that one is marked as cut again. The slices that name a revision are the
edge scheduler's to write, which it does when it has seen the manifest.

Contents first, because a manifest is a promise: whoever reads one finds everything it names. A cut
that fails between the two leaves contents that nobody names, which the sweep removes; the other
order would leave a revision that cannot be delivered and looks as if it could. The sweep and a cut
keep each other out by one lock, or the sweep would take away what is about to be named.

A content is called by its digest, so two placements that send the same object share it, and one
that is there already is not written again. ``_known`` trusts a revision that names a content only
while the content itself has not been found missing.

Numbers grow and are never given twice, also not after the newest revision was deleted: slots that
still name it keep the next number above it (``least``). A page that was written counts at once
(``_take``), before it comes back by a watch; else two cuts in quick succession would want the same
number, and the second would be refused as a conflict that is none.

    what is sent now                          written
    what the newest revision has              nothing, unless a person asked for it under a name
    what an older one has, all pages there    that it was cut again: a note on its first page
    anything else                             new contents, then the pages of a manifest
    feeds that were not read to the end       nothing; it is looked at again in a second
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from skerry.api.edge import (
    PLACEMENT_REVISIONS,
    REVISION_CONTENTS,
    SliceOwner,
    is_staged,
    places_nothing,
)
from skerry.api.errors import ApiError
from skerry.api.kcp.revisions import MAX_CAUSES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.placement_translator.activity import Activities
from skerry.controllers.placement_translator.marking import TranslatorTables
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.logic.fleet.revision.causes import Cause, causes, last_manager
from skerry.logic.fleet.revision.cut import Numbered, Settle, numbered_cut, wants_cut
from skerry.logic.fleet.revision.manifest import Inputs, Manifest
from skerry.logic.fleet.revision.objects import (
    Cut,
    content_object,
    cut_annotations,
    latest,
    read_page,
    revision_objects,
)
from skerry.logic.fleet.translation.desired import Lookup
from skerry.logic.fleet.translation.manifest import (
    LiveState,
    live_scopes,
    live_state,
    what_digest,
)
from skerry.logic.machinery.plan import Action, Create, Patch, Plan, Target
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError

# What has not been read to the end is looked at again; most of it is read when a process starts.
_UNREAD_SECONDS = 1.0

Placements = Callable[[ObjectRef], Object | None]


@dataclass(frozen=True, slots=True)
class ObservedCut:
    """A placement whose cut is due: what it sends now, and the revision that comes to.

    ``known`` are contents that a revision names already.
    """

    placement: ObjectRef
    owner: SliceOwner
    settle: Settle
    state: LiveState
    numbered: Numbered
    causes: tuple[Cause, ...] = ()
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CutPlan(Plan):
    """A plan in two steps: the first *contents* actions in any order, then the others in turn."""

    placement: ObjectRef | None = None
    contents: int = 0


class CutObserver:
    """Looks whether a revision is to be cut."""

    def __init__(
        self,
        client: Client,
        tables: TranslatorTables,
        activities: Activities,
        placements: Placements,
        customizer: Lookup,
        again: Callable[[ObjectRef, float], None],
    ) -> None:
        """*again* has a placement looked at later."""
        self._client = client
        self._tables = tables
        self._activities = activities
        self._placements = placements
        self._customizer = customizer
        self._again = again

    async def observe(self, placement: ObjectRef) -> ObservedCut | None:
        """Return what is to be written; None when there is nothing, or not yet."""
        found = self._due(placement)
        if found is None or found.numbered.existing is not None or not found.causes:
            return found
        named = found.causes[:MAX_CAUSES]
        attributed = await asyncio.gather(*(self._attributed(placement, each) for each in named))
        return replace(found, causes=(*attributed, *found.causes[MAX_CAUSES:]))

    def _due(self, placement: ObjectRef) -> ObservedCut | None:
        """Return what a placement sends, if it is time to cut it and it is something new.

        Nothing is cut from feeds that were not read to the end: half a placement would be a
        revision like any other, and destinations would delete the rest.
        """
        settle, obj = self._activities.settle(placement), self._placements(placement)
        if settle is None or obj is None or places_nothing(obj):
            return None
        if is_being_deleted(obj) and not is_staged(obj):
            return None  # a guard holds it
        tables = self._tables
        pages = tables.revisions.table.pages(placement)
        if not is_staged(obj) and not wants_cut(settle, pages):
            return None
        asked = (settle.manual and bool(settle.asked)) or is_staged(obj)
        wait = 0.0 if asked else self._activities.wait(placement)
        if wait > 0:
            self._again(placement, wait)
            return None
        if tables.dirty.scopes.missing(live_scopes(placement, tables.workspaces)) is not None:
            self._again(placement, _UNREAD_SECONDS)
            return None
        what = what_digest(obj)
        state = (
            LiveState(Manifest((), Inputs(what)), {})
            if is_staged(obj)
            else live_state(placement, what, tables.route, tables.workspaces, self._customizer)
        )
        table, assigned = tables.revisions.table, tables.revisions.assigned.of(placement)
        least = 1 + max(assigned.values(), default=0)
        numbered = numbered_cut(state.manifest.digest, pages, settle, least)
        self._activities.quiet(placement)
        if not numbered.news:
            return None
        newest = latest(pages)
        before = table.manifest(placement, newest.number) if newest is not None else None
        metadata = obj["metadata"]
        owner = SliceOwner(metadata["name"], metadata["uid"])
        caused = causes(before, state.manifest)
        return ObservedCut(
            placement, owner, settle, state, numbered, caused, self._known(placement, state)
        )

    def _known(self, placement: ObjectRef, state: LiveState) -> frozenset[str]:
        """Return the contents that a revision of the workspace names, so that they are there."""
        revisions, cluster = self._tables.revisions, placement.cluster
        return frozenset(
            each.digest
            for other in revisions.table
            if other.cluster == cluster
            for page in revisions.table.pages(other)
            for each in (*page.items, *page.inputs.customizers)
            if each.digest in state.contents
            and not revisions.contents.is_absent((cluster, each.digest))
        )

    async def _attributed(self, placement: ObjectRef, cause: Cause) -> Cause:
        """Return a cause with the manager of the change, if that can be read."""
        if not cause.resource_version:
            return cause
        found = await manager_at(self._client, self._tables, placement.cluster, cause.item)
        return cause._replace(manager=found)


async def manager_at(
    client: Client, tables: TranslatorTables, cluster: ClusterName, item: ObjectRef
) -> str:
    """Return the field manager that changed a source last, if that can be read."""
    served = tables.workspaces.served(cluster, item.group_resource)
    if served is None or not served.versions:
        return ""
    gvr = GroupVersionResource(item.group, served.versions[0], item.resource)
    try:
        found = await client.for_cluster(cluster).get(
            gvr, item.name, item.namespace, metadata_only=True
        )
    except (ApiError, TransportError):
        return ""
    return last_manager(found)


def decide_cut(observed: ObservedCut) -> CutPlan:
    """Write the contents that are new, then the manifest; or mark one that is there."""
    cluster, numbered = observed.placement.cluster, observed.numbered
    asked = observed.settle.asked if observed.settle.manual else ""
    if numbered.existing is not None:
        # By a note and not by a copy of it under a new number: what is known of the revision, that
        # it was Good or Bad, is known of this content.
        target = Target(PLACEMENT_REVISIONS, numbered.existing.name, cluster=cluster)
        notes = {"metadata": {"annotations": cut_annotations(numbered.sequence, asked)}}
        patch = Patch(target, notes, "CutAgain", retry_on_conflict=True)
        return CutPlan([patch], placement=observed.placement)
    contents: list[Action] = [
        Create(
            Target(REVISION_CONTENTS, name, cluster=cluster),
            content_object(name, record.copy()),
            "RevisionCut",
        )
        for name, record in sorted(observed.state.contents.items())
        if name not in observed.known
    ]
    cut = Cut(numbered.number, numbered.sequence, observed.causes, asked)
    pages: list[Action] = [
        Create(
            Target(PLACEMENT_REVISIONS, obj["metadata"]["name"], cluster=cluster),
            obj,
            "RevisionCut",
            exclusive=True,
        )
        for obj in revision_objects(observed.owner, observed.state.manifest, cut)
    ]
    return CutPlan([*contents, *pages], placement=observed.placement, contents=len(contents))


class CutExecutor(Executor):
    """Writes contents side by side and the manifest after them.

    What failed is tried again by whoever retries, with what there is then; nothing here enqueues
    it, or a Rollout that wants no quiet would be tried without a pause.
    """

    def __init__(
        self,
        client: Client,
        tables: TranslatorTables,
        controller: str,
        writing: asyncio.Lock,
        *,
        metrics: RuntimeMetrics,
        dry_run: bool = False,
    ) -> None:
        """*writing* keeps a sweep out: it must not remove what is about to be named."""
        super().__init__(client, controller, metrics=metrics, dry_run=dry_run)
        self._writing = writing
        self._tables = tables
        self._acts = not dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        if not isinstance(plan, CutPlan) or plan.placement is None:
            return await super().execute(plan)
        async with self._writing:
            return await self._written(plan, plan.placement)

    async def _written(self, plan: CutPlan, placement: ObjectRef) -> list[Outcome]:
        outcomes = await super().execute(Plan(plan.actions[: plan.contents], unordered=True))
        for action in plan.actions[plan.contents :]:
            outcomes += await super().execute(Plan([action]))
            self._take(placement, outcomes[-1])
        return outcomes

    def _take(self, placement: ObjectRef, outcome: Outcome) -> None:
        """Know a page before it comes back, so that its number is not given again."""
        if self._acts and outcome.object is not None and "spec" in outcome.object:
            self._tables.revisions.table.put(placement.cluster, read_page(outcome.object))
