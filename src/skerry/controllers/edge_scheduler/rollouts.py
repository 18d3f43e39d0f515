"""What the scheduler knows of Rollouts, their revisions and approvals.

Only placements with a Rollout of their name are concerned. Here is what is observed of them;
``rollout_plan`` decides.

A wave's gate is closed unless everything it asks for says yes: conditions that others write, and
StatusQueries whose rows satisfy an expression. What is missing, incomplete, cut, an answer to what
was asked before, or cannot be evaluated says no, with a reason of its own. A query that is being
read anew therefore restarts a soak, which costs time; taking the rows of before for an answer would
cost edges.

StatusQueries are followed by name, and no Rollout says which event will concern it. So a query that
changes has all Rollouts of its workspace looked through, which are as few as its placements.

Decisions here are about who runs what, so they must not be made on a Rollout that is older than our
own last write: a step that was taken would seem not to be, and would be taken once more. Hence the
overlays, and ``resolve`` before every observation. Versions protect nothing here, for a status is
applied without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from skerry.api.edge import (
    COMPLETE,
    PLACEMENT_REVISIONS,
    ROLLOUT_APPROVALS,
    ROLLOUTS,
    WITHIN_LIMITS,
    edge_placement_ref,
)
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.observed import Observed, ObservedRollout
from skerry.controllers.edge_scheduler.rollout_plan import orphan_writes
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slots import slots_in
from skerry.logic.fleet.query.answer import rows_by_column
from skerry.logic.fleet.revision.objects import latest, read_page
from skerry.logic.fleet.rollout.clocks import Elapsed
from skerry.logic.fleet.rollout.expression import ExpressionError
from skerry.logic.fleet.rollout.spec import RolloutSpec, read_spec
from skerry.logic.fleet.rollout.state import (
    OPEN,
    ROLLED_BACK,
    ROLLING_BACK,
    Gate,
    Revision,
    state_of,
)
from skerry.logic.fleet.rollout.waves import Labels
from skerry.logic.machinery.conditions import find_condition
from skerry.logic.machinery.plan import Action
from skerry.runtime.client import Client, cluster_of
from skerry.runtime.index import Index, Key, key_of
from skerry.runtime.informer import Informer
from skerry.runtime.write_overlay import InformerOverlay, InformerOverlays

BY_PLACEMENT = "placement"
# Until when content is frozen at a Location with these labels; None where it is not.
ContentFrozen = Callable[[Labels], datetime | None]


class RolloutInformers(NamedTuple):
    """What is followed where the edge export offers rollouts."""

    rollouts: Informer
    revisions: Informer
    approvals: Informer
    queries: Informer | None = None


def lean_revision(obj: Object) -> Object:
    """Keep of a PlacementRevision what a rollout asks: not its items, but what of them binds.

    That is items that must not be rolled back and definitions with a storage version, as rows of
    group, resource, namespace, name, digest, storage version and whether it says "no rollback". In
    most revisions there is none, so what is kept does not grow with the number of objects.
    """
    page = read_page(obj)
    spec = obj["spec"]
    binding = [
        [*each.item[1:], each.digest, each.storage_version, each.no_rollback]
        for each in page.items
        if each.no_rollback or each.storage_version
    ]
    kept = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    lean = {k: spec[k] for k in ("placement", "number", "digest", "page")}
    lean |= {"items": [], "inputs": {"what": ""}}
    return {
        "metadata": kept,
        "spec": lean,
        "status": {"verdict": page.verdict or "Candidate"},
        "binding": binding,
        "empty": not spec.get("items"),
    }


def revision_owners(obj: Object) -> tuple[tuple[str, str], ...]:
    """Index PlacementRevisions and RolloutApprovals under the placement they are of."""
    spec = obj.get("spec") or {}
    return ((cluster_of(obj), spec.get("placement") or spec.get("rollout") or ""),)


# -- observing ---------------------------------------------------------------------------------


class RolloutState:
    """The Rollouts there are, and what of our writes has not come back yet."""

    def __init__(
        self,
        informers: RolloutInformers,
        elapsed: Elapsed,
        now: Callable[[], datetime],
        labels: Callable[[ObjectRef], Labels],
        frozen: Callable[[ObjectRef], ContentFrozen | None],
        goes: Callable[[Destination, Iterable[ObjectRef]], bool] = lambda *_: False,
    ) -> None:
        """*labels* are those of a Location; *frozen* says of a placement where content is.

        *goes* says which destinations leave at once, whatever the pace.
        """
        self._goes = goes
        self._informers = informers
        self._elapsed = elapsed
        self._now = now
        self._labels = labels
        self._frozen = frozen
        self._rollouts = InformerOverlay(informers.rollouts)
        self._revisions = InformerOverlay(
            informers.revisions, project=lambda _, answer: lean_revision(answer)
        )
        # An executor reports its writes here, so that no decision is made on what they changed.
        self.writes = InformerOverlays(self._rollouts, self._revisions)
        # Specs are compiled once, expressions and all; by the Rollout, with its UID and generation.
        self._specs: dict[ObjectRef, tuple[tuple[str, int], RolloutSpec]] = {}

    def rollout(self, ref: ObjectRef) -> Object | None:
        """Return the Rollout of a placement, as newly as it is known."""
        return self._rollouts.get(Key(ref.cluster, "", ref.name))

    async def resolve(self, ref: ObjectRef, client: Client) -> None:
        """Read what the caches may not show yet of what was written about a Rollout.

        That is what was sent and never answered; and the verdict on a revision that failed, where
        the Rollout says that it did and the revision does not. Whoever led before us wrote both,
        but each comes by a watch of its own, and one may be far behind the other.
        """
        await self._rollouts.resolve(client)
        await self._revisions.resolve(client)
        obj = self.rollout(ref)
        state = state_of((obj or {}).get("status") or {})
        if state.failure is None or state.phase not in (ROLLING_BACK, ROLLED_BACK):
            return
        for held in self._revisions.by(BY_PLACEMENT, (ref.cluster, ref.name)):
            page = read_page(held)
            if (page.number, page.page) == (state.failure.revision, 1) and page.verdict != "Bad":
                await self._revisions.read(client, key_of(held))

    def departing(self, observed: Observed) -> frozenset[int]:
        """Return the members of a placement's slices that were let go before, and wait."""
        obj = self.rollout(observed.ref)
        found = state_of((obj or {}).get("status") or {}).departing
        if not found:
            return frozenset()
        slots = slots_in(observed.slices.values()).assigned
        return frozenset(key for key, given in slots.items() if given.slot in found)

    def forget(self, ref: ObjectRef) -> None:
        """Take that a placement is gone."""
        self._specs.pop(ref, None)

    def observe(self, observed: Observed) -> ObservedRollout | None:
        """Return what a placement's Rollout is decided from; None when it has none.

        A revision counts by its first page. One of which another page is missing is known by
        number and digest, and counts as one that must not be rolled back.
        """
        ref = observed.ref
        obj = self.rollout(ref)
        if obj is None:
            return None
        spec, now = self._spec(ref, obj), self._now()
        revisions = self._revisions.by(BY_PLACEMENT, (ref.cluster, ref.name))
        pages = {
            each.number: (each, held) for held in revisions if (each := read_page(held)).page == 1
        }
        binding = _bindings(revisions)
        newest = latest([each for each, _ in pages.values()])
        stable = int((obj.get("status") or {}).get("stable") or 0)
        base = binding.get(stable) or []
        quiet = state_of(obj.get("status") or {}).quiet
        labels = {each: self._labels(each.location_ref) for each in observed.destinations}
        ask = self._frozen(ref)
        return ObservedRollout(
            obj,
            spec,
            {
                number: Revision(
                    number,
                    each.digest,
                    each.verdict,
                    is_one_way(binding[number], base),
                    held["empty"],
                )
                for number, (each, held) in pages.items()
            },
            {number: each.name for number, (each, _) in pages.items()},
            newest.number if newest is not None else 0,
            now,
            self._elapsed.since(quiet.since, quiet.proven) if quiet.since else 0.0,
            {
                each["metadata"]["name"]: each
                for each in self._informers.approvals.index.by(
                    BY_PLACEMENT, (ref.cluster, ref.name)
                )
            },
            self._gate(ref, obj, spec),
            labels,
            {where: until for where, found in labels.items() if (until := ask(found))}
            if ask
            else {},
            self._goes,
        )

    def _spec(self, ref: ObjectRef, obj: Object) -> RolloutSpec:
        metadata = obj["metadata"]
        key = metadata.get("uid", ""), int(metadata.get("generation") or 0)
        known = self._specs.get(ref)
        if known is None or known[0] != key:
            known = self._specs[ref] = key, read_spec(obj.get("spec") or {})
        return known[1]

    def _gate(self, ref: ObjectRef, obj: Object, spec: RolloutSpec) -> Gate:
        """Return whether queries and conditions of others let a wave pass.

        The first that says no is reported, in a fixed order, so the message stays the same for as
        long as the cause does. Only caches are asked: whatever changes the answer is an event.
        """
        for kind in spec.judge.external:
            found = find_condition(obj, kind)
            if found is None or found.get("status") != "True":
                said = "is absent" if found is None else f"is {found.get('status')}"
                return Gate(False, "ExternalCheck", f"condition {kind} {said}")
        queries = self._informers.queries
        for check in spec.judge.checks:
            query = queries.index.get(Key(ref.cluster, "", check.query)) if queries else None
            if query is None:
                return Gate(False, "QueryMissing", f"there is no StatusQuery {check.query}")
            if unsettled := _unsettled(query):
                return Gate(False, "QueryIncomplete", f"StatusQuery {check.query} {unsettled}")
            try:
                if not check.holds.holds(rows_by_column(query.get("status") or {})):
                    return Gate(False, "CheckFailed", f"StatusQuery {check.query} does not hold")
            except ExpressionError as error:
                return Gate(False, "CheckFailed", f"StatusQuery {check.query}: {error}")
        return OPEN

    def orphaned(self, ref: ObjectRef) -> tuple[Action, ...]:
        """Return what is to be said of a Rollout whose placement is not there."""
        obj = self.rollout(ref)
        if obj is None:
            return ()
        return tuple(orphan_writes(ref, obj, self._now()))

    # -- events --------------------------------------------------------------------------------

    def changed(self, enqueue: Callable[[ObjectRef, str, ObjectRef], None]) -> None:
        """Have *enqueue* called with a placement, and the kind and object that touched it.

        A Rollout is of the placement of its name; revisions and approvals name theirs in the spec.
        """
        found = self._informers

        def about(kind: str, group: Any) -> Callable[[Object | None, Object | None], None]:
            def handle(old: Object | None, new: Object | None) -> None:
                obj = new or old
                if obj is not None:
                    spec = obj.get("spec") or {}
                    name = spec.get("placement") or spec.get("rollout") or obj["metadata"]["name"]
                    if kind == "Rollout":
                        name = obj["metadata"]["name"]
                    ref = edge_placement_ref(cluster_of(obj), name)
                    enqueue(ref, kind, ObjectRef.of(group, obj))

            return handle

        for kind, informer, gvr in (
            ("Rollout", found.rollouts, ROLLOUTS),
            ("PlacementRevision", found.revisions, PLACEMENT_REVISIONS),
            ("RolloutApproval", found.approvals, ROLLOUT_APPROVALS),
        ):
            informer.add_handler(about(kind, gvr.group_resource))
        if found.queries is not None:
            found.queries.add_handler(self._asked(found.rollouts.index, enqueue))

    def _asked(
        self, rollouts: Index, enqueue: Callable[[ObjectRef, str, ObjectRef], None]
    ) -> Callable[[Object | None, Object | None], None]:
        def handle(old: Object | None, new: Object | None) -> None:
            obj = new or old
            if obj is None:
                return
            cluster, name = cluster_of(obj), obj["metadata"]["name"]
            for each in list(rollouts.objects()):
                checks = ((each.get("spec") or {}).get("judge") or {}).get("checks") or ()
                if cluster_of(each) == cluster and any(c.get("query") == name for c in checks):
                    ref = edge_placement_ref(cluster, each["metadata"]["name"])
                    enqueue(ref, "Rollout", ref)

        return handle


def _unsettled(query: Object) -> str:
    """Return why the rows of a query are no answer to what it asks now; empty where they are."""
    status = query.get("status") or {}
    if status.get("observedGeneration") != query["metadata"].get("generation"):
        return "has not been answered since it was changed"
    if not _is_true(query, COMPLETE):
        return "is incomplete"
    return "" if _is_true(query, WITHIN_LIMITS) else "has more rows than are shown"


def _is_true(obj: Object, kind: str) -> bool:
    return (find_condition(obj, kind) or {}).get("status") == "True"


def _bindings(revisions: Iterable[Object]) -> dict[int, list[Sequence[Any]] | None]:
    """Return what of each revision binds, from all its pages; None when one of them is missing.

    Pages come by a watch one after the other, so a new revision is incomplete for a moment.
    """
    found: dict[int, list[Sequence[Any]]] = {}
    missing: dict[int, int] = {}
    for obj in revisions:
        number, page = obj["spec"]["number"], obj["spec"].get("page") or {}
        found.setdefault(number, []).extend(obj["binding"])
        missing[number] = missing.get(number, page.get("of", 1)) - 1
    return {number: None if missing[number] else each for number, each in found.items()}


def is_one_way(binding: Sequence[Sequence[Any]] | None, base: Sequence[Sequence[Any]]) -> bool:
    """Tell whether a revision changes an object that must not be rolled back.

    One that says so itself, or a definition whose storage version is another. Of a revision that
    cannot be read as a whole (None) nobody knows, and what it changed may not be taken back.
    """
    if binding is None:
        return True
    before = {tuple(each[:4]): each for each in base}
    for each in binding:
        old = before.get(tuple(each[:4]))
        if each[6] and (old is None or old[4] != each[4]):
            return True
        if each[5] and old is not None and old[5] and old[5] != each[5]:
            return True
    return False
