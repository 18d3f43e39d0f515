"""How the translation of an EdgePlacement is reported: problems, a condition, an Event per change.

``status.problems`` lists what could not be put on its way, which the condition ``Delivered`` of
another controller begins with; the condition ``ConflictFree`` says whether nobody else has the same
names. What is withheld because somebody has is not on its way either. One line stands for one
object, however many destinations it concerns; of conditions, what does not fit is counted.

Problems are of rows, so they are found anew by evaluating all rows after a restart. Until that is
done for every mailbox of a placement its status is left as it is: a report of the first few rows
would take back what is still so, and announce it a second time. Three writers share the status
here too: the scheduler writes first, and a change in between is a Conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from skerry.api.edge import CONFLICT_FREE, EDGE_PLACEMENTS, TRANSLATED, Mailbox
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.placement_translator.guards import ReleasePlan, newly_charged, taken
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.guards.book import OBJECTS, Book, status_with
from skerry.logic.fleet.history.objects import Because, Withheld, key_of
from skerry.logic.fleet.translation.merging import COMPROMISES, CONFLICTS, PlacementProblem
from skerry.logic.fleet.translation.selected import what_of
from skerry.logic.machinery.conditions import condition, condition_of, set_conditions
from skerry.logic.machinery.plan import NOTHING, Announcement, Plan, Target, Update
from skerry.logic.machinery.selectors import SelectorError
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer

INVALID_SELECTOR = "InvalidSelector"

# A message is for people; the rest of a long list is a number to them.
_LINES = 5
# A status is read by machines too; but whoever mended twenty problems sees the next.
_MAX_PROBLEMS = 20


# -- the table of problems -----------------------------------------------------------------------

_Row = tuple[Mailbox, ObjectRef]
# What a server says of a write is reported beside what follows from the tables.
_REFUSED = "refused"
_DERIVED = "derived"


class PlacementProblems:
    """Problems by placement, each at the mailboxes it is met in.

    Before every row of a mailbox has been evaluated, nobody knows what there is to report of it:
    that there are no problems would be as wrong as the first of them alone.
    """

    def __init__(self, enqueue: Callable[[ObjectRef], None]) -> None:
        self._enqueue = enqueue
        self._reported: dict[tuple[str, _Row], tuple[PlacementProblem, ...]] = {}
        self._by_placement: dict[ObjectRef, dict[tuple[str, _Row], list[Problem]]] = {}
        self._complete: set[Mailbox] = set()

    def put(self, mailbox: Mailbox, item: ObjectRef, found: Iterable[PlacementProblem]) -> None:
        """Take what is wrong with one object in one mailbox, in place of what was."""
        self._put((_DERIVED, (mailbox, item)), tuple(found))

    def put_refusal(
        self, mailbox: Mailbox, item: ObjectRef, found: Iterable[PlacementProblem]
    ) -> None:
        """Take what the mailbox said of an attempt to write; nothing when it went well."""
        self._put((_REFUSED, (mailbox, item)), tuple(found))

    def complete(self, mailbox: Mailbox, placements: Iterable[ObjectRef]) -> None:
        """Take that every row of a mailbox has been evaluated; *placements* go there."""
        if mailbox not in self._complete:
            self._complete.add(mailbox)
            for placement in sorted(placements):
                self._enqueue(placement)

    def destinations_changed(self, placement: ObjectRef) -> None:
        """Take that a placement goes elsewhere: it may have waited for a mailbox that it left."""
        self._enqueue(placement)

    def is_complete(self, mailboxes: Iterable[Mailbox]) -> bool:
        """Tell whether all there is to report of *mailboxes* is known."""
        return self._complete.issuperset(mailboxes)

    def of(self, placement: ObjectRef) -> dict[tuple[Problem, ObjectRef], list[Mailbox]]:
        """Return a placement's problems with the objects and mailboxes they are about."""
        found: dict[tuple[Problem, ObjectRef], list[Mailbox]] = {}
        for (_, (mailbox, item)), problems in self._by_placement.get(placement, {}).items():
            for problem in problems:
                found.setdefault((problem, item), []).append(mailbox)
        return found

    def forget_mailbox(self, mailbox: Mailbox) -> None:
        """Drop what is known of a mailbox that is not there any more."""
        self._complete.discard(mailbox)
        for key in [key for key in self._reported if key[1][0] == mailbox]:
            self._put(key, ())

    def _put(self, key: tuple[str, _Row], found: tuple[PlacementProblem, ...]) -> None:
        """Replace what one row says; enqueues whom it spoke of before, and whom it does now."""
        old = self._reported.get(key, ())
        if old == found:
            return
        for placement in {each.placement for each in old}:
            known = self._by_placement[placement]
            del known[key]
            if not known:
                del self._by_placement[placement]
        for each in found:
            self._by_placement.setdefault(each.placement, {}).setdefault(key, []).append(
                each.problem
            )
        if found:
            self._reported[key] = found
        else:
            self._reported.pop(key, None)
        for placement in sorted({each.placement for each in (*old, *found)}):
            self._enqueue(placement)


# -- observing and deciding ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusObserved:
    """A placement and its problems, each with the mailboxes it is met in."""

    placement: Object
    problems: Mapping[tuple[Problem, ObjectRef], Sequence[Mailbox]]
    malformed: str = ""
    # What guards let go of its objects, and keep.
    book: Book = field(default_factory=Book)


class StatusObserver:
    """Reads what is to be reported."""

    def __init__(
        self,
        placements: Informer,
        problems: PlacementProblems,
        mailboxes: Callable[[ObjectRef], Iterable[Mailbox]],
        book: Callable[[ObjectRef], Book],
    ) -> None:
        """*mailboxes* returns the mailboxes there are at a placement's destinations, *book* what
        guards let go of its objects, and keep."""
        self._book = book
        self._placements = placements
        self._problems = problems
        self._mailboxes = mailboxes

    async def observe(self, name: ObjectRef) -> StatusObserved | None:
        """Return None too early: the scheduler's fields coming, and the last row, enqueue it."""
        placement = self._placements.index.get(Key(name.cluster, "", name.name))
        # The scheduler writes first what the rest of the status must have.
        if placement is None or "specGeneration" not in (placement.get("status") or {}):
            return None
        if not self._problems.is_complete(self._mailboxes(name)):
            return None
        malformed = ""
        try:
            what_of(placement)
        except SelectorError as error:
            malformed = str(error)
        return StatusObserved(placement, self._problems.of(name), malformed, self._book(name))


def withheld_of(
    problems: PlacementProblems, placement: ObjectRef, mailboxes: Sequence[Mailbox]
) -> Withheld | None:
    """Return which objects of a placement are not on their way; None while nobody knows.

    Of several reasons for one object the first counts, in their order.
    """
    if not problems.is_complete(mailboxes):
        return None
    found: dict[tuple[str, str, str, str], Because] = {}
    ordered = sorted(
        problems.of(placement).items(), key=lambda each: (each[0][1], each[0][0].reason)
    )
    for (problem, item), met in ordered:
        if problem.reason not in COMPROMISES:
            found.setdefault(key_of(item), Because(problem.reason, problem.message, len(set(met))))
    return found


def decide_status(observed: StatusObserved, now: datetime) -> Plan:
    """Bring problems and condition up to date; announce what has become worse."""
    placement, old = observed.placement, observed.placement["status"]
    confirmed = taken(placement, observed.book.hold)
    if confirmed is not None:
        return confirmed
    known = old.get("conditions") or []
    problems, conflicts = _problems(observed), _conflict_free(observed)
    conditions = set_conditions(known, [conflicts], rfc3339(now), dropped=(TRANSLATED,))
    status = status_with({**old, "conditions": conditions}, observed.book, OBJECTS)
    if problems:
        status["problems"] = problems
    else:
        status.pop("problems", None)
    if status == old:
        return NOTHING
    metadata = placement["metadata"]
    target = Target(
        EDGE_PLACEMENTS, metadata["name"], "", metadata["annotations"][CLUSTER_ANNOTATION]
    )
    obj = {**placement, "status": status}
    update = Update(target, obj, "ProblemsChanged", subresource="status")
    news: list[Announcement] = []
    if problems and problems != old.get("problems"):
        text = _message([(each["message"], each["destinations"]) for each in problems])
        news.append(Announcement(placement, "Warning", problems[0]["reason"], text))
    before = condition_of(known, CONFLICT_FREE) or {}
    if conflicts["status"] == "False" and conflicts["message"] != before.get("message"):
        text = conflicts["message"]
        news.append(Announcement(placement, "Warning", conflicts["reason"], text))
    charged = newly_charged(old, observed.book)
    if charged is None:
        return Plan([update], news)
    ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, placement)
    return ReleasePlan([update], news, releases=ref, charged=charged)


def _problems(observed: StatusObserved) -> list[Object]:
    found = _of(observed, lambda problem: problem.reason not in COMPROMISES)
    listed = [
        {"reason": problem.reason, "message": problem.message, "destinations": count}
        for problem, count in found
    ]
    if observed.malformed:
        listed.insert(
            0, {"reason": INVALID_SELECTOR, "message": observed.malformed, "destinations": 0}
        )
    return listed[:_MAX_PROBLEMS]


def _conflict_free(observed: StatusObserved) -> Object:
    found = _of(observed, lambda problem: problem.reason in CONFLICTS)
    if found:
        text = _message([(problem.message, count) for problem, count in found])
        return condition(CONFLICT_FREE, False, found[0][0].reason, text)
    text = "nobody wants something different under the same names"
    return condition(CONFLICT_FREE, True, "NoConflicts", text)


_Found = list[tuple[Problem, int]]


def _of(observed: StatusObserved, meant: Callable[[Problem], bool]) -> _Found:
    """Return the problems that are meant, in a fixed order, each with its number of mailboxes."""
    found: dict[Problem, int] = {}
    for (problem, _), mailboxes in observed.problems.items():
        if meant(problem):
            found[problem] = max(found.get(problem, 0), len(set(mailboxes)))
    return sorted(found.items(), key=lambda pair: (pair[0].reason, pair[0].message))


def _message(found: Sequence[tuple[str, int]]) -> str:
    lines = [
        f"{message} (at {count} destinations)" if count > 1 else message
        for message, count in found[:_LINES]
    ]
    if len(found) > _LINES:
        lines.append(f"and {len(found) - _LINES} more")
    return "; ".join(lines)
