"""DecisionRecords of what happens to slices: made before they are written, in the same reconcile.

What a plan changes about destinations becomes decisions (``decided``, pure). They are written as
records before the plan's slices are (``HistoryWriter``), so that no slice ever changes without one.
Where the server will not take a record, because the workspace is full or does not serve the kind,
slices are written all the same: history must not stop placement. The next record then begins with
a checkpoint of what the slices hold, as it does for slices that are older than their history.

Who leaves is known by name, though the cache of slices keeps numbers only: ``Members`` remembers
each destination once, however many placements have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from skerry.api.edge import (
    CHANGED_BY,
    DECIDED_BY,
    DECISION_RECORDS,
    HISTORY_RETENTION,
    ROLLOUTS,
    SOURCE_PLACEMENT,
    slice_owner,
)
from skerry.api.errors import ApiError
from skerry.api.objects import Object, revision_of
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler import observe
from skerry.controllers.edge_scheduler.observe import NAME, Gathered, Observed
from skerry.kit.log import Logger
from skerry.logic.fleet.history.difference import Because, Causes, Difference, Move, Why, decisions
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import (
    Cause,
    Decision,
    Head,
    Maker,
    Reason,
    Subject,
    digest,
    in_order,
    order_of,
    records_of,
)
from skerry.logic.fleet.history.retention import InvalidRetention, Limits, limits_of
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    Assigned,
    assigned_members,
    destinations_in,
    label_for,
    lean_slice,
    member,
    unpacked_members,
)
from skerry.logic.fleet.rollout.state import State
from skerry.logic.machinery.plan import Create, Plan, Target
from skerry.runtime.client import Client, Selection
from skerry.runtime.execute import Executor
from skerry.runtime.metrics import RuntimeMetrics

# Decisions of one placement within a second that get records of their own. Beyond, its next
# reconcile waits until the second is over: a storm of changes becomes few records of many causes.
_MAX_PER_SECOND = 5
# Slots that a bitmap can hold; whoever has a larger one is known by its key.
_MAX_SLOT = 1 << 31
_BEGINS = Reason("HistoryBegins", "what the slices held when records began")
_DELETED = Reason("PlacementDeleted", "the EdgePlacement was deleted")
_MOVED = Reason("RevisionAssigned", "")
# The server will never take it: forbidden or full, not served there, too large, invalid.
_REFUSALS = (400, 403, 404, 413, 422)

_log = Logger(NAME)


class Members:
    """Destinations by their members, for those that are in slices."""

    def __init__(self) -> None:
        self._known: dict[int, Destination] = {}
        self._prune_at = 10_000

    def lean(self, obj: Object) -> Object:
        """Return what the cache keeps of a slice, and remember who is in it."""
        self.note(destinations_in(obj))
        return lean_slice(obj)

    def note(self, destinations: Iterable[Destination]) -> None:
        """Remember destinations that are in a slice, or are about to be."""
        for each in destinations:
            self._known[member(each)] = each

    def get(self, number: int) -> Destination | None:
        """Return the destination that a member stands for."""
        return self._known.get(number)

    def prune(self, slices: Callable[[], Iterable[Object]]) -> None:
        """Forget who is in no slice any more, when there may be as many of them as of others."""
        if len(self._known) < self._prune_at:
            return
        held = {each for piece in slices() for each in unpacked_members(piece["members"])}
        self._known = {number: each for number, each in self._known.items() if number in held}
        self._prune_at = max(10_000, 2 * len(self._known))


@dataclass(frozen=True, slots=True)
class Recording:
    """What the decisions about one placement are recorded with.

    ``destination`` says whom a member stands for; the others say why, asked of the index as it is
    when the decision is made.
    """

    generation: int
    resource_version: str
    changed_by: str
    destination: Callable[[int], Destination | None]
    why_joined: Why
    why_left: Why


@dataclass(frozen=True, slots=True)
class Story:
    """What is to be recorded before slices are written, and what they hold at present."""

    subject: Subject
    decisions: tuple[Decision, ...]
    present: tuple[Standing, ...] = ()
    # The newest revision of a slice there is; what is decided follows from it.
    follows: int = 0
    # Slices that hold the destinations: one is written at once, several one after another.
    pages: int = 1
    # Somebody leaves of whom nothing but a number is known.
    is_incomplete: bool = False


# -- deciding --------------------------------------------------------------------------------


def decided(
    observed: Observed,
    wanted: Mapping[int, Destination],
    assigned: Mapping[int, Assigned],
    rolled: State | None = None,
) -> Story | None:
    """Return what a change of the slices to *wanted* is to be recorded as; None: not at all.

    *rolled* is what its Rollout has decided.
    """
    recording = observed.history
    if recording is None:
        return None
    present, given = _present(observed)
    joined = [each for each in wanted if each not in present]
    left = [each for each in present if each not in wanted]
    moved = [
        each
        for each in (present if given or assigned else ())
        if each in wanted and given.get(each) != assigned.get(each)
    ]
    if not joined and not left and not moved:
        return None
    difference = Difference(
        tuple(_standing(wanted[each], assigned.get(each)) for each in joined),
        tuple(_standings(left, recording.destination, given)),
        tuple(
            Move(
                _standing(wanted[each], given.get(each)),
                _standing(wanted[each], assigned.get(each)),
            )
            for each in moved
        ),
    )
    subject = Subject(observed.ref.name, observed.owner.uid, recording.generation)
    versions = [each["metadata"].get("resourceVersion") for each in observed.slices.values()]
    follows = max(map(revision_of, versions), default=revision_of(recording.resource_version))
    found = decisions(
        difference,
        causes_of(observed.causes, _placement_cause(observed, recording, first=not present)),
        recording.why_joined,
        recording.why_left,
        Because(why_moved(rolled), _rollout_cause(observed)),
    )
    held = tuple(_standings(present, recording.destination, given))
    lost = len(difference.left) < len(left)
    return Story(subject, tuple(found), held, follows, len(observed.slices), lost)


def ended(gone: observe.Gone, count: int) -> Story | None:
    """Return the end of a placement as a story; None where nobody saw it go."""
    newest = gone.causes.newest
    if newest is None or not newest.uid or newest.kind != "EdgePlacement":
        return None
    causes = causes_of(gone.causes, ())
    decision = Decision("Left", (), _DELETED, causes.known, causes.total, everybody=count)
    return Story(Subject(gone.ref.name, newest.uid), (decision,))


def _present(observed: Observed) -> tuple[dict[int, None], dict[int, Assigned]]:
    """Return the members of all slices, and what they are given.

    Slices of a namesake that was deleted are taken over; for this placement they begin now.
    """
    members: dict[int, None] = {}
    given: dict[int, Assigned] = {}
    for piece in observed.slices.values():
        owner = slice_owner(piece["metadata"])
        if owner is not None and owner.uid != observed.owner.uid:
            continue
        members.update(dict.fromkeys(unpacked_members(piece["members"])))
        given.update(assigned_members(piece))
    return members, given


def _standings(
    members: Iterable[int],
    destination: Callable[[int], Destination | None],
    given: Mapping[int, Assigned],
) -> Iterable[Standing]:
    for each in members:
        found = destination(each)
        if found is not None:
            yield _standing(found, given.get(each))


def _standing(destination: Destination, assigned: Assigned | None) -> Standing:
    if assigned is None or assigned.slot >= _MAX_SLOT:
        return Standing(destination)
    return Standing(destination, assigned.slot, assigned.revision or None)


def why_moved(rolled: State | None) -> Reason:
    """Return why destinations get another revision, as their Rollout has it."""
    if rolled is None:
        return _MOVED
    if rolled.failure is not None:
        return Reason("Rollback", f"rollback: {rolled.failure.message}")
    if rolled.wave_name:
        return Reason("WaveOpened", f"wave {rolled.wave_name}")
    return Reason(rolled.phase)


def _rollout_cause(observed: Observed) -> Causes:
    """Return the Rollout as the cause of revisions; without one, what led to the reconcile."""
    if observed.rollout is None:
        return causes_of(observed.causes, ())
    obj = observed.rollout.object
    metadata = obj["metadata"]
    by = (metadata.get("annotations") or {}).get(CHANGED_BY, "")
    version = str(metadata.get("resourceVersion", ""))
    ref = observed.ref._replace(resource=ROLLOUTS.resource, name=metadata["name"])
    return causes_of(Gathered((observe.Cause("Rollout", ref, "", version, by),), 1), ())


def _placement_cause(
    observed: Observed, recording: Recording, *, first: bool
) -> tuple[observe.Cause, ...]:
    """Return the placement itself as the cause of its first slices, if no other is known."""
    if not first:
        return ()
    version, by = recording.resource_version, recording.changed_by
    return (observe.Cause("EdgePlacement", observed.ref, "created", version, by),)


def causes_of(gathered: Gathered, otherwise: Sequence[observe.Cause]) -> Causes:
    """Return causes as records tell them; what was there at the start caused nothing."""
    real = [each for each in gathered.known if not each.initial]
    total = gathered.total - (len(gathered.known) - len(real))
    if not real:
        real, total = list(otherwise), len(otherwise)
    return Causes(tuple(dict.fromkeys(map(_cause, real))), total)


def _cause(cause: observe.Cause) -> Cause:
    user, audit_id = changed_by(cause.changed_by)
    return Cause(
        cause.kind,
        cause.ref.name,
        cause.ref.cluster,
        resource_version=cause.resource_version,
        change=cause.change,
        user=user,
        audit_id=audit_id,
    )


def changed_by(annotation: str) -> tuple[str, str]:
    """Return user and audit ID of ``edge.kcp.io/changed-by``; empty where it says none."""
    try:
        said = orjson.loads(annotation) if annotation else {}
    except orjson.JSONDecodeError:
        return "", ""
    if not isinstance(said, dict):
        return "", ""
    return str(said.get("user", "")), str(said.get("auditID", ""))


# -- writing ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chain:
    """What is known of the records of one placement."""

    head: Head | None
    uid: str = ""
    # Contents of records that no slice has followed yet: a plan that failed between the two.
    unsettled: set[str] = field(default_factory=set)
    # What is there may not tell the whole story: a record was refused, or we do not know whether
    # all slices followed.
    has_gap: bool = False
    # Read from the server, and not written by us since.
    recalled: bool = False


class HistoryWriter:
    """Writes what was decided, chained to what was recorded before."""

    def __init__(
        self,
        client: Client,
        maker: Maker,
        members: Members,
        slices: Callable[[], Iterable[Object]],
        *,
        metrics: RuntimeMetrics,
        dry_run: bool = False,
        limits: Limits | None = None,
    ) -> None:
        """*slices* returns those that are cached.

        *limits* are those of placements that have no annotation of their own.
        """
        self.members = members
        self._slices = slices
        self._client = client
        self._clock = client.clock
        self._maker = maker
        self._limits = limits or Limits()
        self._dry_run = dry_run
        self._executor = _RecordExecutor(client, NAME, metrics=metrics, dry_run=dry_run)
        self._chains: dict[ObjectRef, _Chain] = {}
        self._recent: dict[ObjectRef, deque[float]] = {}

    def clear(self) -> None:
        """Forget what was recorded: another process may have led and recorded since."""
        self._chains.clear()

    def is_kept(self, placement: Object) -> bool:
        """Tell whether anything is recorded about a placement."""
        text = (placement["metadata"].get("annotations") or {}).get(HISTORY_RETENTION)
        try:
            return not limits_of(text, self._limits).is_off
        except InvalidRetention:
            return not self._limits.is_off

    def wait_seconds(self, ref: ObjectRef) -> float:
        """Return how long a placement with that many decisions of late is to wait; mostly 0."""
        recent = self._recent.get(ref)
        if recent is None or len(recent) < _MAX_PER_SECOND:
            return 0.0
        return max(0.0, recent[0] + 1.0 - self._clock.monotonic())

    async def write(self, ref: ObjectRef, story: Story) -> None:
        """Record what is about to happen; returns when it is in the store, or cannot be."""
        for decision in story.decisions:
            if decision.change == "Joined":
                self.members.note(each.destination for each in decision.standings)
        self.members.prune(self._slices)
        chain = self._chains.get(ref) or await self._recall(ref, story.follows)
        made = self._made(chain, story)
        if not made:
            return
        try:
            outcomes = await self._executor.execute(Plan([_create(ref, each) for each in made]))
        except ApiError as error:
            self._chains.pop(ref, None)
            if error.code not in _REFUSALS:
                raise
            _log.warning("decision not recorded", key=ref.qualified_name, error=str(error))
            self._chains[ref] = _Chain(chain.head, story.subject.uid, has_gap=True)
            return
        except BaseException:
            self._chains.pop(ref, None)  # what of it is written is to be read again
            raise
        if self._dry_run:
            return
        self._note_decision(ref)
        if any(outcome.result == "exists" for outcome in outcomes):
            # Somebody else decided the same: what follows must follow theirs.
            self._chains.pop(ref, None)
            return
        last = made[-1]
        order = order_of(last["metadata"]["name"])
        if order is not None:
            chain.head = Head(order, digest(last))
        chain.unsettled = _contents(made)
        chain.uid, chain.has_gap = story.subject.uid, story.is_incomplete
        chain.recalled = False
        self._chains[ref] = chain

    def settled(self, ref: ObjectRef) -> None:
        """Take that the slices are as was recorded."""
        chain = self._chains.get(ref)
        if chain is not None:
            chain.unsettled.clear()

    async def end(self, ref: ObjectRef, story: Story | None) -> None:
        """Record the end of a placement of which something is recorded."""
        if story is not None:
            chain = self._chains.get(ref) or await self._recall(ref, 0)
            if chain.head is not None:
                await self.write(ref, replace(story, follows=chain.head.order.revision))
        self._chains.pop(ref, None)
        self._recent.pop(ref, None)

    def _made(self, chain: _Chain, story: Story) -> list[Object]:
        """Return the records to write; none where all of them are written and wait for slices."""
        made = self._records(chain, story, story.decisions)
        contents = _contents(made)
        if chain.unsettled and chain.unsettled == contents:
            return []
        changed_mind = bool(chain.unsettled)
        doubtful = chain.has_gap or (chain.recalled and story.pages > 1)
        unknown = chain.head is None or chain.uid != story.subject.uid
        if changed_mind or doubtful or (unknown and story.present):
            begin = Decision("Checkpoint", story.present, _BEGINS)
            made = self._records(chain, story, (begin, *story.decisions))
        chain.unsettled.clear()
        return made

    def _records(self, chain: _Chain, story: Story, found: Iterable[Decision]) -> list[Object]:
        return records_of(
            found,
            story.subject,
            self._maker,
            follows=story.follows,
            head=chain.head,
            now=self._clock.now(),
        )

    def _note_decision(self, ref: ObjectRef) -> None:
        recent = self._recent.setdefault(ref, deque(maxlen=_MAX_PER_SECOND))
        recent.append(self._clock.monotonic())

    async def _recall(self, ref: ObjectRef, follows: int) -> _Chain:
        """Read the end of the records of a placement; once, when something is to be recorded."""
        client = self._client.for_cluster(ref.cluster)
        labels = f"{SOURCE_PLACEMENT}={label_for(ref.name)},{DECIDED_BY}={self._maker.controller}"
        selection = Selection(labels=labels, metadata_only=True)
        try:
            listed = await client.list(DECISION_RECORDS, selection)
            own = [
                each
                for each in in_order(listed.items)
                if order_of(each["metadata"]["name"]) is not None
            ]
            if not own:
                return self._keep(ref, _Chain(None))
            last = await client.get(DECISION_RECORDS, own[-1]["metadata"]["name"])
        except ApiError as error:
            if error.code not in _REFUSALS:
                raise
            return self._keep(ref, _Chain(None))
        order = order_of(last["metadata"]["name"])
        uid = str((last.get("placement") or {}).get("uid", ""))
        head = Head(order, digest(last)) if order is not None else None
        late = [
            each for each in own if revision_of(each["metadata"].get("resourceVersion")) > follows
        ]
        return self._keep(ref, _Chain(head, uid, _contents(late), recalled=True))

    def _keep(self, ref: ObjectRef, chain: _Chain) -> _Chain:
        self._chains[ref] = chain
        return chain


def _contents(records: Iterable[Object]) -> set[str]:
    """Return what records are named for."""
    orders = (order_of(each["metadata"]["name"]) for each in records)
    return {each.content for each in orders if each is not None and not each.checkpoint}


class _RecordExecutor(Executor):
    """Sends records without asking for them back."""

    def __init__(
        self, client: Client, controller: str, *, metrics: RuntimeMetrics, dry_run: bool
    ) -> None:
        super().__init__(client, controller, metrics=metrics, dry_run=dry_run)
        self._options = replace(self._options, field_validation="Ignore", metadata_only=True)


def _create(ref: ObjectRef, record: Object) -> Create:
    target = Target(DECISION_RECORDS, record["metadata"]["name"], cluster=ref.cluster)
    return Create(target, record, reason=record["change"])


def recording_of(
    writer: HistoryWriter, why_joined: Why, why_left: Why, placement: Object
) -> Recording | None:
    """Return what the decisions about a placement are recorded with; None where none are kept."""
    if not writer.is_kept(placement):
        return None
    metadata = placement["metadata"]
    deleted = metadata.get("deletionTimestamp") is not None
    return Recording(
        int(metadata.get("generation") or 0),
        str(metadata.get("resourceVersion", "")),
        (metadata.get("annotations") or {}).get(CHANGED_BY, ""),
        writer.members.get,
        why_joined,
        (lambda _: _DELETED) if deleted else why_left,
    )
