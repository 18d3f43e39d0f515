"""The controller that keeps the mailbox's reports of what was born at the edge.

Watches follow the rules of the SyncerConfigs and the edge's types: a rule about a type that does
not exist yet is no error, it begins to count when the type appears, at the edge or in the mailbox.

Two directions could feed each other: a copy that came down would be reported up, and its report
would go down again. So what was placed by us (by the journal, or by the mark on the object) goes
down and never up, and what stands in the mailbox without the mark of a report is a wish and never
written over. Where the mailbox was not read yet neither is known, and nothing is decided.

A report is written in two steps, the object and then its status, as any API has them; the record of
the first is flushed before the second, so that a report whose edge object goes is taken down again
by whoever comes next. A Namespace that the mailbox lacks is made once, on the second try: the
refusal alone does not tell a missing namespace from a missing type.

Three steps for one object, then, each with its key enqueued again:

    observed                    written in the mailbox         the record then
    no record                   the report, without status     content, UID of the report
    record, status differs      the status                     the same, with the status
    gone, type read to the end  the deletion, by that UID      none

An answer that is lost between the first write and its record costs nothing but the same write
again: a report is applied, and is recognized by its mark as ours to apply (``is_report``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skerry.api.edge import MAILBOX_FIELD_MANAGER, is_report
from skerry.api.errors import ApiError, NotFound
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.downsync.execute import NotYet
from skerry.edge.syncer.state import SyncerState
from skerry.edge.syncer.tables.mailbox import slim
from skerry.kit.invariant import InvariantError
from skerry.logic.fleet.syncing.access import MAX_NAMESPACES
from skerry.logic.fleet.syncing.present import OURS, our_digest
from skerry.logic.fleet.syncing.recorded import UpsyncRecord
from skerry.logic.fleet.syncing.upsync import UpsyncObserved, UpsyncPlan, needs_lookup
from skerry.logic.machinery.edges.scope import Names
from skerry.logic.machinery.plan import Apply, Plan
from skerry.runtime.client import Selection
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory

_Watched = tuple[GroupVersionResource, str]


# -- events ----------------------------------------------------------------------------------


class UpsyncWatches:
    """The watches at the edge that the rules call for, and which of their objects are enqueued."""

    def __init__(self, state: SyncerState, factory: InformerFactory) -> None:
        self._s = state
        self._factory = factory
        self._watches: dict[_Watched, Informer] = {}

    def adjust(self) -> None:
        """Watch exactly what the present rules and types call for.

        Everything that was brought up is enqueued: of what is not watched any more nobody else
        would notice that its report has to go.
        """
        wanted = set(self._wanted())
        for watched in [known for known in self._watches if known not in wanted]:
            self._factory.stop(self._watches.pop(watched))
        for watched in wanted - set(self._watches):
            self._begin(watched)
        self.enqueue_upsynced()

    def types(self) -> set[GroupVersionResource]:
        """Return the types that are watched at the edge."""
        return {gvr for gvr, _ in self._watches}

    def find(self, ref: ObjectRef) -> tuple[GroupVersionResource | None, Informer | None]:
        """Return the type of *ref* as the edge serves it, and the watch that shows it.

        Without a watch nothing is known of the object: its absence is none.
        """
        info = self._s.edge_types.preferred().get(ref.group_resource)
        if info is None:
            return None, None
        for namespace in dict.fromkeys((ref.namespace, "")):
            informer = self._watches.get((info.gvr, namespace))
            if informer is not None:
                return info.gvr, informer
        return info.gvr, None

    def unknown_types(self) -> list[str]:
        """Return the types the rules name that the edge, or the mailbox, does not serve."""
        s = self._s
        if not s.edge_types.known or not s.hub_types.known:
            return []
        lost = s.config.scope.unserved(s.edge_types.preferred())
        lost |= {gvr.group_resource for gvr in self.types() if not s.hub_types.find(gvr)}
        return sorted(map(str, lost))

    def enqueue_upsynced(self) -> None:
        """Have everything looked at again that was brought up."""
        for ref in self._s.records.all_upsynced():
            self._s.up.add(ref)

    def enqueue_all(self) -> None:
        """Have everything looked at again: the mailbox has other types now."""
        for gvr in self.types():
            self.enqueue_type(gvr.group_resource)

    def enqueue_type(self, kind: GroupResource) -> None:
        """Have everything of a type looked at again: the mailbox was read as far as that goes."""
        for (gvr, _), informer in self._watches.items():
            if gvr.group_resource == kind:
                for key in list(informer.index):
                    self._s.up.add(ObjectRef("", *kind, key.namespace, key.name))

    def enqueue_name(self, ref: ObjectRef) -> None:
        """Take it that the mailbox has, or has no more, an object of this name."""
        if self._s.config.scope.brings_up(ref):
            self._s.up.add(ref)

    def forget_content(self) -> None:
        """Send everything anew: the mailbox's reports are those of another store."""
        for ref in self._s.records.all_upsynced():
            record = self._s.records.upsynced(ref)
            if record is not None:
                self._s.records.set_upsynced(ref, UpsyncRecord(record.version))
                self._s.up.add(ref)

    def _wanted(self) -> Iterator[_Watched]:
        scope, served = self._s.config.scope, self._s.edge_types.preferred()
        for kind in scope.upsync_types(served):
            info = served[kind]
            if "watch" not in info.verbs:
                continue
            for namespace in _places(info.namespaced, scope.upsync_namespaces(kind)):
                yield info.gvr, namespace

    def _begin(self, watched: _Watched) -> None:
        gvr, namespace = watched
        informer = self._factory.informer(
            gvr, Selection(namespace=namespace), transform=_kept, packed=True
        )
        kind = gvr.group_resource

        def handler(old: Object | None, new: Object | None) -> None:
            ref = ObjectRef.local(kind, new or old or {})
            if self._s.config.scope.brings_up(ref) or self._s.records.was_upsynced(ref):
                self._s.up.add_after(ref, self._s.settings.return_seconds)

        informer.add_handler(handler)
        self._watches[watched] = informer


def _kept(obj: Object) -> Object:
    """Return an edge object with a sign where it was us who made it."""
    ours = our_digest(obj)
    return {**slim(obj), OURS: ours} if ours else slim(obj)


def _places(namespaced: bool, namespaces: Names) -> list[str]:
    """Return where to watch; the empty name is everywhere."""
    if not namespaced or namespaces is None or len(namespaces) > MAX_NAMESPACES:
        return [""]
    return sorted(namespaces)


# -- observe ---------------------------------------------------------------------------------


class UpsyncObserver:
    """Reads what matters about one object that was born at the edge."""

    def __init__(self, state: SyncerState, watches: UpsyncWatches) -> None:
        self._s = state
        self._watches = watches
        # Namespaces for want of which the mailbox refused a report.
        self.missing_namespaces: set[str] = set()

    async def observe(self, ref: ObjectRef) -> UpsyncObserved | None:
        """Return everything ``upsync`` needs; None before it can be known.

        The edge is never asked, only its watches. The mailbox is asked once, before the first write
        under a name, as its reports are not followed and the name may be somebody else's.
        """
        s = self._s
        record = s.records.upsynced(ref)
        gvr, informer = self._watches.find(ref)
        if gvr is None and record is not None:
            gvr = GroupVersionResource(ref.group, record.version, ref.resource)
        if gvr is None:
            return None
        live = None if informer is None else informer.index.get(Key("", ref.namespace, ref.name))
        placed = self._goes_down(ref, live)
        if placed is None:
            return None  # looked at again when the mailbox was read
        observed = UpsyncObserved(
            ref=ref,
            gvr=gvr,
            live=live,
            edge_synced=informer is not None and informer.synced.is_set(),
            covered=s.config.scope.brings_up(ref) if s.config.configured else None,
            placed=placed,
            record=record,
            served=not s.hub_types.known or s.hub_types.find(gvr) is not None,
            has_status=s.hub_types.has_status(gvr, unknown=False),
            namespace_missing=ref.namespace in self.missing_namespaces,
        )
        if needs_lookup(observed):
            return replace(observed, taken=await self._is_taken(gvr, ref))
        return observed

    def _goes_down(self, ref: ObjectRef, live: Object | None) -> bool | None:
        """Tell whether *ref* is of what goes down; None before the mailbox can tell."""
        s = self._s
        if s.records.was_placed(ref) or (live or {}).get(OURS):
            return True
        if not s.config.scope.covers(ref):
            return False
        if not s.mailbox.synced(ref.group_resource):
            return None
        wish = s.mailbox.get(ref)
        return wish is not None and not is_report(wish)

    async def _is_taken(self, gvr: GroupVersionResource, ref: ObjectRef) -> bool:
        try:
            return not is_report(await self._s.hub.get(gvr, ref.name, ref.namespace))
        except NotFound:
            return False
        except ApiError as error:
            raise NotYet(f"{ref.text}: {error.message}") from error


# -- execute ---------------------------------------------------------------------------------


class UpsyncExecutor(Executor):
    """Writes reports in the mailbox; raises ``NotYet`` when another try is due."""

    def __init__(
        self, state: SyncerState, observer: UpsyncObserver, *, dry_run: bool = False
    ) -> None:
        super().__init__(
            state.hub,
            MAILBOX_FIELD_MANAGER,
            metrics=state.metrics.runtime,
            dry_run=dry_run,
            journal=state.records,
        )
        self._s = state
        self._missing_namespaces = observer.missing_namespaces
        self._dry_run = dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        if not isinstance(plan, UpsyncPlan):
            raise InvariantError(f"not a plan of upsync: {plan}")
        ref = plan.ref
        try:
            outcomes = await super().execute(plan)
        except ApiError as error:
            if plan.record is not None and self._lacks_namespace(ref, error):
                self._s.up.add(ref)
                return []
            raise NotYet(f"{ref.text}: {error.message}") from error
        if not self._dry_run:
            await self._settle(plan, outcomes)
        return outcomes

    def _lacks_namespace(self, ref: ObjectRef, error: ApiError) -> bool:
        """Tell whether the Namespace may be what the mailbox lacks, and nobody has made it yet.

        The second refusal in a row is for another reason: the name is taken out, the failure counts
        as one, and a later try begins from the front.
        """
        if not isinstance(error, NotFound) or not ref.namespace or self._dry_run:
            return False
        if ref.namespace in self._missing_namespaces:
            self._missing_namespaces.discard(ref.namespace)
            return False
        self._missing_namespaces.add(ref.namespace)
        return True

    async def _settle(self, plan: UpsyncPlan, outcomes: list[Outcome]) -> None:
        """Take note of what was written, and of how things stand now."""
        s, ref = self._s, plan.ref
        if plan.outcome is not None:
            s.outcomes.set(ref, plan.outcome)
        answer = outcomes[-1].object if outcomes else None
        if plan.record is None or answer is None or not isinstance(outcomes[-1].action, Apply):
            return
        self._missing_namespaces.discard(ref.namespace)
        s.records.set_upsynced(ref, replace(plan.record, mailbox_uid=answer["metadata"]["uid"]))
        await s.records.flush()
        s.up.add(ref)  # the status comes with the next step
