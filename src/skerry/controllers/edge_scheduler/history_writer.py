"""Writes DecisionRecords, chained to what was recorded before, and remembers the end of the chain.

Where the server will not take a record, because the workspace is full or does not serve the kind,
slices are written all the same: history must not stop placement. The next record then begins with
a checkpoint of what the slices hold, as it does for slices that are older than their history.

A record is written before the slices that it is about, so there is always a moment in which the one
stands and the other does not. Folding the records must give what the slices hold all the same, and
that is what the fields of ``_Chain`` are for. When a plan comes after such a moment:

* it decides the same again: the record is there, by its name, and is not written twice;
* it decides otherwise: what was recorded did not happen. A checkpoint says what the slices hold
  instead, and the new decision follows it (``unsettled``);
* a record was refused: what is recorded is not everything, and again a checkpoint says what is so
  (``has_gap``);
* the end of the chain was read from the server, and there are several slices: some of them may have
  been written by the one who led before, and others not (``recalled``).

One slice is written at once or not at all, which is why the last is no doubt with a single page.

Who leaves and is known by a number alone cannot be named by any record. A checkpoint of all who can
be named leaves them out, and is written at once: they may be all that changes, nothing else may be
decided for months, and whoever leads then knows of no gap. It is ahead of the slices for a moment,
unlike other checkpoints, so the next decision has one of its own.

What a draft is about is forgotten until it is sent: if anything goes wrong in between, the chain is
read again, which costs a list and a get, and cannot be wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from skerry.api.edge import DECISION_RECORDS, EDGE_PLACEMENTS
from skerry.api.errors import ApiError
from skerry.api.objects import Object, revision_of
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.authors import author_of
from skerry.controllers.edge_scheduler.history import DELETED, Members, Story
from skerry.controllers.edge_scheduler.observe import NAME
from skerry.controllers.edge_scheduler.observed import Recording
from skerry.kit.log import Logger
from skerry.logic.fleet.history.difference import Why
from skerry.logic.fleet.history.observations import Seen
from skerry.logic.fleet.history.record import (
    Decision,
    Head,
    Maker,
    Reason,
    head_of,
    in_order,
    order_of,
    records_of,
)
from skerry.logic.fleet.history.retention import Limits, is_kept
from skerry.logic.fleet.history.writing import REFUSALS, creation, made_by
from skerry.logic.machinery.plan import Create, Plan
from skerry.runtime.client import Client, Selection
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.metrics import RuntimeMetrics

# Decisions of one placement within a second that get records of their own. Beyond, its next
# reconcile waits until the second is over: a storm of changes becomes few records of many causes.
_MAX_PER_SECOND = 10
_BEGINS = Reason("HistoryBegins", "what the slices held when records began")
_UNNAMED = Reason("HistoryIncomplete", "what slices hold without those who leave and have no name")

_log = Logger(NAME)


class _Content(NamedTuple):
    """What a record says, by its name. ``checkpoint`` is its page, 0 where it is none."""

    checkpoint: int
    digest: str


@dataclass(slots=True)
class _Chain:
    """What is known of the records of one placement."""

    head: Head | None
    uid: str = ""
    # Records that no slice has followed yet: a plan that failed between the two.
    unsettled: set[_Content] = field(default_factory=set)
    # What is there may not tell the whole story: a record was refused, or we do not know whether
    # all slices followed.
    has_gap: bool = False
    # Read from the server, and not written by us since.
    recalled: bool = False
    # The hold that a person confirmed last.
    released: str = ""


class Draft(NamedTuple):
    """Records of a decision, to be written before what it does."""

    ref: ObjectRef
    story: Story
    chain: _Chain
    creations: tuple[Create, ...]


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
        verified: bool = True,
    ) -> None:
        """*slices* returns those that are cached.

        *limits* are those of placements that have no annotation of their own. *verified*: the hub
        itself says who changed an object.
        """
        self.members = members
        self.verified = verified
        self._slices = slices
        self._client = client
        self._clock = client.clock
        self._maker = maker
        self._limits = limits or Limits()
        self._dry_run = dry_run
        self.executor = _RecordExecutor(client, NAME, metrics=metrics, dry_run=dry_run)
        self._chains: dict[ObjectRef, _Chain] = {}
        self._recent: dict[ObjectRef, deque[float]] = {}
        # What of Rollouts is recorded, and when that was last. A process that has just started
        # takes what it finds for recorded: an observation may be lost, and none is recorded twice.
        self._seen: dict[ObjectRef, tuple[Seen, float]] = {}

    def clear(self) -> None:
        """Forget what was recorded: another process may have led and recorded since."""
        self._chains.clear()
        self._seen.clear()

    def released(self, ref: ObjectRef) -> str:
        """Return the hold of which it was last recorded that a person had confirmed it."""
        chain = self._chains.get(ref)
        return chain.released if chain is not None else ""

    def seen(self, ref: ObjectRef) -> tuple[Seen, float] | None:
        """Return what of a placement's Rollout is recorded, and how many seconds ago that was."""
        known = self._seen.get(ref)
        return None if known is None else (known[0], self._clock.monotonic() - known[1])

    def is_kept(self, placement: Object) -> bool:
        """Tell whether anything is recorded about a placement."""
        return is_kept(placement, self._limits)

    def wait_seconds(self, ref: ObjectRef) -> float:
        """Return how long a placement with that many decisions of late is to wait; mostly 0."""
        recent = self._recent.get(ref)
        if recent is None or len(recent) < _MAX_PER_SECOND:
            return 0.0
        return max(0.0, recent[0] + 1.0 - self._clock.monotonic())

    async def write(self, ref: ObjectRef, story: Story) -> None:
        """Record what is about to happen; returns when it is in the store, or cannot be."""
        await self.send(await self.draft(ref, story))

    async def draft(self, ref: ObjectRef, story: Story) -> Draft:
        """Return the records of what is about to happen.

        They are then written: by ``send``, or by somebody else who says so to ``sent``.
        """
        self.members.prune(self._slices)  # before newcomers are noted, whom no slice holds yet
        for decision in story.decisions:
            if decision.change == "Joined":
                self.members.note(each.destination for each in decision.standings)
        chain = self._chains.get(ref)
        if chain is None or chain.uid not in ("", story.subject.uid):
            chain = _Chain(None) if story.is_first else await self._recall(ref, story)
        made = self._made(chain, story)
        if made:
            # Whatever happens meanwhile: what is not known to be written is to be read again.
            self._chains.pop(ref, None)
        return Draft(ref, story, chain, tuple(creation(ref.cluster, each) for each in made))

    async def send(self, draft: Draft) -> None:
        """Write records one after another."""
        if not draft.creations:
            return
        ref, chain = draft.ref, draft.chain
        try:
            outcomes = await self.executor.execute(Plan(draft.creations))
        except ApiError as error:
            if error.code not in REFUSALS:
                raise
            _log.warning("decision not recorded", key=ref.qualified_name, error=str(error))
            self._chains[ref] = _Chain(chain.head, draft.story.subject.uid, has_gap=True)
            return
        if self._dry_run:
            self._chains[ref] = chain
        else:
            self.sent(draft, outcomes)

    def sent(self, draft: Draft, outcomes: Iterable[Outcome]) -> None:
        """Remember what was written, and when; nothing where all of it was recorded before."""
        if not draft.creations:
            return
        ref, chain, story = draft.ref, draft.chain, draft.story
        recent = self._recent.setdefault(ref, deque(maxlen=_MAX_PER_SECOND))
        recent.append(self._clock.monotonic())
        if any(outcome.result == "exists" for outcome in outcomes):
            return  # somebody else decided the same: what follows must follow theirs
        made = [each.object for each in draft.creations]
        chain.head = head_of(made[-1]) or chain.head
        chain.unsettled = _contents(made)
        chain.uid, chain.has_gap = story.subject.uid, story.is_incomplete
        chain.recalled = False
        chain.released = story.released or chain.released
        self._chains[ref] = chain

    def settled(self, ref: ObjectRef, seen: Seen | None = None) -> None:
        """Take that the slices are as was recorded, and what of a Rollout is recorded now."""
        known = self._seen.get(ref)
        if seen is not None and (known is None or known[0] != seen):
            self._seen[ref] = seen, self._clock.monotonic()
        chain = self._chains.get(ref)
        if chain is not None:
            chain.unsettled.clear()

    async def end(self, ref: ObjectRef, story: Story | None) -> None:
        """Record the end of a placement of which something is recorded."""
        if story is not None:
            chain = self._chains.get(ref) or await self._recall(ref, story)
            if chain.head is not None and chain.uid == story.subject.uid:
                await self.write(ref, replace(story, follows=chain.head.order.revision))
        for each in (self._chains, self._recent, self._seen):
            each.pop(ref, None)

    def _made(self, chain: _Chain, story: Story) -> list[Object]:
        """Return the records to write; none where all of them are written and wait for slices."""
        made = self._records(chain, story, story.decisions)
        decided = {each for each in chain.unsettled if not each.checkpoint}
        if decided and decided == _contents(made) and not story.is_incomplete:
            return []
        doubtful = chain.has_gap or (chain.recalled and story.pages > 1)
        unsaid = story.succeeds or story.is_incomplete
        unknown = chain.head is None
        if decided or doubtful or unsaid or (unknown and not story.is_empty):
            reason = _UNNAMED if story.is_incomplete else _BEGINS
            begin = Decision("Checkpoint", story.present(), reason)
            made = self._records(chain, story, (begin, *story.decisions))
            if unsaid and chain.unsettled == _contents(made):
                return []
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

    async def _recall(self, ref: ObjectRef, story: Story) -> _Chain:
        """Read the end of the records of a placement; once, when something is to be recorded."""
        client = self._client.for_cluster(ref.cluster)
        labels = made_by(self._maker.controller, ref.name)
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
            if error.code not in REFUSALS:
                raise
            return self._keep(ref, _Chain(None))
        uid = str((last.get("placement") or {}).get("uid", ""))
        if uid != story.subject.uid:
            return self._keep(ref, _Chain(None))  # a namesake's; a new chain begins
        late = [
            each
            for each in own
            if revision_of(each["metadata"].get("resourceVersion")) > story.follows
        ]
        contents, reason = _contents(late), (last.get("reason") or {}).get("code")
        ahead = bool(contents) and reason == _UNNAMED.code
        return self._keep(ref, _Chain(head_of(last), uid, contents, ahead, recalled=True))

    def _keep(self, ref: ObjectRef, chain: _Chain) -> _Chain:
        self._chains[ref] = chain
        return chain


def _contents(records: Iterable[Object]) -> set[_Content]:
    """Return what records, in their order, are named for: those that still count.

    A checkpoint says what slices hold, and so that what was recorded before it did not happen.
    """
    found: set[_Content] = set()
    for each in records:
        order = order_of(each["metadata"]["name"])
        if order is None:
            continue
        if order.checkpoint == 1:
            found.clear()
        found.add(_Content(order.checkpoint, order.content))
    return found


class _RecordExecutor(Executor):
    """Sends records without asking for them back."""

    def __init__(
        self, client: Client, controller: str, *, metrics: RuntimeMetrics, dry_run: bool
    ) -> None:
        super().__init__(client, controller, metrics=metrics, dry_run=dry_run)
        self._options = replace(self._options, field_validation="Ignore", metadata_only=True)


def recording_of(
    writer: HistoryWriter, why_joined: Why, why_left: Why, placement: Object
) -> Recording | None:
    """Return what the decisions about a placement are recorded with; None where none are kept."""
    if not writer.is_kept(placement):
        return None
    metadata = placement["metadata"]
    ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, placement)
    deleted = metadata.get("deletionTimestamp") is not None
    return Recording(
        int(metadata.get("generation") or 0),
        str(metadata.get("resourceVersion", "")),
        author_of("EdgePlacement", placement, verified=writer.verified),
        writer.members.get,
        why_joined,
        (lambda _: DELETED) if deleted else why_left,
        writer.seen(ref),
        writer.released(ref),
        writer.verified,
    )
