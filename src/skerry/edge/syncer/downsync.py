"""Objects on their way down: observe one, decide, act, remember.

The decision is ``logic.fleet.syncing.downsync``; here is what surrounds it. The edge's answer to an
apply is fresher than any watch, so it is kept until the watch has caught up: without that each
apply would look like drift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from skerry.api.edge import EDGE_FIELD_MANAGER, is_report, is_system_object
from skerry.api.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.edge.syncer.containers import others_inside
from skerry.edge.syncer.state import SyncerState
from skerry.kit.log import Logger
from skerry.logic.fleet.syncing.access import missing_rule
from skerry.logic.fleet.syncing.downsync import ORPHANED, Decision, Observed, Outcome, decide
from skerry.logic.fleet.syncing.projection import reduced
from skerry.logic.fleet.syncing.records import Desired, Placed, revision_of
from skerry.logic.machinery.edges.scope import NAMESPACES
from skerry.logic.machinery.plan import Apply, Delete
from skerry.runtime.execute import Executor
from skerry.runtime.transport import TransportError

# A watch that has not shown our own write after this long has missed it.
_FRESH_SECONDS = 10.0
# A request outlives its lost connection by no more than servers let requests run.
_SETTLING_SECONDS = 75.0
# Whether a container has become empty no event tells.
_LOOK_INSIDE_SECONDS = 60.0
_IMMUTABLE = ("immutable", "may not change fields", "other than", "may not be changed")


class NotYet(Exception):
    """The object is not as wanted; to be tried again later."""


@dataclass(frozen=True, slots=True)
class _Fresh:
    live: Object
    until: float


class Downsync:
    """Brings one object after the other to where it should be."""

    def __init__(self, state: SyncerState) -> None:
        self._s = state
        self._executor = Executor(state.edge, EDGE_FIELD_MANAGER, metrics=state.metrics.runtime)
        self._fresh: dict[ObjectRef, _Fresh] = {}
        # The content an immutable field refused, by object.
        self._refused: dict[ObjectRef, str] = {}
        # When an apply was last sent whose outcome is unknown; before our time, all of them.
        self._uncertain: dict[ObjectRef, float] = {}
        self._began = state.edge.clock.monotonic()
        self._log = Logger("syncer-downsync")

    async def reconcile(self, ref: ObjectRef) -> None:
        """Take one step for *ref*; raises ``NotYet`` when another try is due."""
        s = self._s
        gvr = s.version_of(ref)
        if gvr is None or not self._concerns_us(ref):
            s.outcomes.forget(ref)
            return
        if s.served_edge.known and s.served_edge.find(gvr) is None:
            await self._unserved(ref, gvr)
            return
        try:
            observed = self._observed(ref, await self._live(gvr, ref))
        except Forbidden as error:
            self._refused_by(error, "get", ref)
            raise NotYet(error.message) from error
        decision = await self._decided(observed, gvr)
        await self._act(ref, observed, decision)

    def edge_touched(self, ref: ObjectRef, old: Object | None, new: Object | None) -> None:
        """Take a change at the edge: the watch has caught up with our own writes or not."""
        fresh = self._fresh.get(ref)
        seen = new or old
        if fresh is not None and seen is not None and _revision(seen) >= _revision(fresh.live):
            del self._fresh[ref]

    # Observing.

    def _concerns_us(self, ref: ObjectRef) -> bool:
        """Tell whether the edge is to be looked at for *ref* at all; we may not be allowed to."""
        if self._s.memory.was_placed(ref):
            return True
        obj = self._s.mailbox.get(ref)
        return self._s.config.scope.covers(ref) and (obj is None or _goes_down(ref, obj))

    def _observed(self, ref: ObjectRef, live: Object | None) -> Observed:
        s = self._s
        obj = s.mailbox.get(ref)
        wanted: Desired | None = None
        if obj is not None and _goes_down(ref, obj):
            followed = s.mailbox.followed(ref.group_resource)
            wanted = Desired.of(followed.version if followed else "", obj)
        record = s.memory.placed(ref)
        content = (wanted or (record.desired if record else None)) if ref in self._refused else None
        return Observed(
            ref=ref,
            wanted=wanted,
            covered=s.config.scope.covers(ref),
            live=live,
            record=record,
            evidence=s.evidence(ref.group_resource),
            immutable=content is not None and self._refused[ref] == content.digest,
            released=_uid(live) == (s.memory.released(ref) or None),
        )

    async def _live(self, gvr: GroupVersionResource, ref: ObjectRef) -> Object | None:
        """Return the edge's object, reduced: the newest of watch, answer and a look of our own."""
        view = self._s.view
        fresh = self._fresh.get(ref)
        if fresh is not None and fresh.until > self._s.edge.clock.monotonic():
            return fresh.live
        if fresh is None and view.known(gvr, ref):
            seen = view.get(gvr, ref)
            if seen is not None or not self._is_intent(ref):
                return seen
        # A watch may lag behind what an apply without an answer has done: look for ourselves.
        self._fresh.pop(ref, None)
        try:
            return reduced(await self._s.edge.get(gvr, ref.name, ref.namespace))
        except NotFound:
            return None

    def _is_intent(self, ref: ObjectRef) -> bool:
        record = self._s.memory.placed(ref)
        return record is not None and not record.edge_uid

    def _settling_seconds(self, ref: ObjectRef) -> float:
        """Return how much longer an apply without an answer may still take effect."""
        since = self._uncertain.get(ref, self._began)
        return since + _SETTLING_SECONDS - self._s.edge.clock.monotonic()

    async def _decided(self, observed: Observed, gvr: GroupVersionResource) -> Decision:
        decision = decide(observed)
        if decision.look_inside:
            inside = await others_inside(self._s, observed.ref, observed.record)
            decision = decide(replace(observed, in_use=inside))
            if inside:
                self._s.down.add_after(observed.ref, _LOOK_INSIDE_SECONDS)
            observed = replace(observed, in_use=inside)
        if decision.pending_deletion and not self._s.gate.is_open(observed.ref):
            evidence = replace(observed.evidence, within_budget=False)
            return decide(replace(observed, evidence=evidence))
        if not decision.pending_deletion:
            self._s.gate.unname(observed.ref)
        return decision

    # Acting.

    async def _act(self, ref: ObjectRef, observed: Observed, decision: Decision) -> None:
        s = self._s
        if decision.record is None and observed.record and not observed.record.edge_uid:
            left = self._settling_seconds(ref)
            if left > 0:
                # What is not there yet may still come: the intent stays until it cannot.
                s.outcomes.set(ref, decision.outcome)
                s.down.add_after(ref, left)
                return
        if decision.record != observed.record:
            s.memory.set_placed(ref, decision.record)
            self._note_release(ref, observed, decision)
        if decision.plan:
            await s.memory.journal.flush()
            await self._execute(ref, observed, decision)
        else:
            self._settled(ref, decision.outcome)
            if decision.record != observed.record:
                await s.memory.journal.flush()

    def _note_release(self, ref: ObjectRef, observed: Observed, decision: Decision) -> None:
        """Remember what is left at the edge on purpose, until it is ours again."""
        left = decision.outcome == ORPHANED
        uid = (_uid(observed.live) or "") if left else ""
        if uid != self._s.memory.released(ref):
            self._s.memory.set_released(ref, uid)

    async def _execute(self, ref: ObjectRef, observed: Observed, decision: Decision) -> None:
        try:
            results = await self._executor.execute(decision.plan)
        except Invalid as error:
            self._invalid(ref, decision, error)
            return
        except ApiError as error:
            self._refused_by(error, "patch", ref)
            if isinstance(error, NotFound):
                self._missing(ref)
            raise NotYet(error.message) from error
        except TransportError as error:
            self._uncertain[ref] = self._s.edge.clock.monotonic()
            raise NotYet(str(error)) from error
        self._uncertain.pop(ref, None)
        result = results[0]
        if isinstance(result.action, Delete):
            self._s.gate.deleted(ref)
        elif result.object is not None and decision.record is not None:
            self._placed(ref, observed, decision.record, result.object)
        self._settled(ref, decision.outcome)

    def _placed(self, ref: ObjectRef, observed: Observed, record: Placed, answer: Object) -> None:
        created = True if observed.live is None else record.created
        known = record.after(answer, applied=record.desired.digest, created=created)
        self._s.memory.set_placed(ref, known)
        self._refused.pop(ref, None)
        until = self._s.edge.clock.monotonic() + _FRESH_SECONDS
        self._fresh[ref] = _Fresh(reduced(answer), until)
        self._s.down.add_after(ref, _FRESH_SECONDS + 1)

    def _settled(self, ref: ObjectRef, outcome: Outcome) -> None:
        s = self._s
        arrived = outcome.state == "Applied" != s.outcomes.get(ref).state
        s.outcomes.set(ref, outcome)
        s.back.add_after(ref, s.settings.return_seconds)
        if arrived and ref.group_resource == NAMESPACES:
            for waiting in s.outcomes.waiting_in(ref.name):
                s.down.add(waiting)

    def _invalid(self, ref: ObjectRef, decision: Decision, error: Invalid) -> None:
        """Take a refusal of the content: final for an immutable field, else worth another try."""
        action = decision.plan.actions[0]
        immutable = any(word in error.message for word in _IMMUTABLE)
        if not immutable or decision.record is None or not isinstance(action, Apply):
            self._failed(ref, Outcome("Failed", "Rejected", error.message))
            raise NotYet(error.message) from error
        self._refused[ref] = decision.record.desired.digest
        self._failed(ref, Outcome("Failed", "ImmutableField", error.message))
        self._s.down.add(ref)

    async def _unserved(self, ref: ObjectRef, gvr: GroupVersionResource) -> None:
        s = self._s
        if not (s.config.scope.covers(ref) and s.mailbox.get(ref) is not None):
            observed = self._observed(ref, None)
            await self._act(ref, observed, _without_plan(decide(observed)))
            return
        kind = f"{gvr.resource}.{gvr.version}.{gvr.group}".rstrip(".")
        message = f"the edge does not serve {kind}; the object waits for its definition"
        self._failed(ref, Outcome("Waiting", "KindUnknown", message))
        s.served_edge.suspect()

    def _missing(self, ref: ObjectRef) -> None:
        if ref.namespace:
            self._s.down.add(namespace_ref(ref.namespace))
        self._s.served_edge.suspect()

    def _refused_by(self, error: ApiError, verb: str, ref: ObjectRef) -> None:
        outcome = _refusal(error, verb, ref)
        self._failed(ref, outcome)
        if outcome.reason == "EdgeForbidden":
            self._s.rights.miss(ref, verb)

    def _failed(self, ref: ObjectRef, outcome: Outcome) -> None:
        if self._s.outcomes.get(ref) != outcome:
            self._log.warning(
                "object not applied", key=ref.text, reason=outcome.reason, error=outcome.message
            )
        self._s.outcomes.set(ref, outcome)
        self._s.back.add_after(ref, self._s.settings.return_seconds)


def _goes_down(ref: ObjectRef, obj: Object) -> bool:
    if obj["metadata"].get("deletionTimestamp"):
        return False
    return not is_report(obj) and not is_system_object(ref.group_resource, obj)


def _without_plan(decision: Decision) -> Decision:
    """Where a type is not served nothing can be done, only remembered."""
    return replace(decision, plan=type(decision.plan)())


def _uid(obj: Object | None) -> str | None:
    return None if obj is None else str(obj["metadata"].get("uid") or "")


def _revision(obj: Object) -> int:
    return revision_of(obj["metadata"].get("resourceVersion"))


def _refusal(error: ApiError, verb: str, ref: ObjectRef) -> Outcome:
    """Say in the hub's words what the edge said."""
    if isinstance(error, Forbidden):
        # RBAC says who cannot do what; admission says why this object may not be.
        if " cannot " in error.message:
            rule = missing_rule(verb, ref.group_resource, ref.namespace)
            return Outcome("Failed", "EdgeForbidden", rule)
        return Outcome("Failed", "Rejected", error.message)
    if isinstance(error, Conflict):
        return Outcome("Failed", "FieldConflict", error.message)
    if isinstance(error, NotFound):
        return Outcome("Waiting", "DependencyMissing", error.message)
    return Outcome("Failed", "Rejected" if error.code < 500 else "EdgeFailing", error.message)
