"""From the choice of a Location to the health of the copy there.

The links are in the order in which an object meets them: whether its kind travels, whether the
placement means it, whether the Location is a destination, whether a grant covers it, whether the
revision sent there has it (of a placement with a Rollout), whether it can be customized, whether
the mailbox is ready, whether the copy is there and up to date, whether the edge is heard of,
whether it applied the copy, and whether what runs there is well. A link is asked for only when all
before it hold. What comes after a broken one has no meaning: the health of a copy that was never
sent is nobody's health.

Each link answers from what the controller responsible for it would answer from, with its functions:
the copy that should be in the mailbox is made here as the translator makes it, and compared by the
same digest. A copy that is older than its source is therefore not wrong but *unknown*: it may
change in the next moment, and both answers would be a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from skerry.api.edge import HAND_OVER_TO, SYNC_ERROR, is_projected
from skerry.api.edge_categories import Category, category_of
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import Withheld, customize
from skerry.logic.fleet.explanation.links import Chain, Link, followed
from skerry.logic.fleet.explanation.silence import Silence
from skerry.logic.fleet.explanation.what import Subject, defined_by, travelling
from skerry.logic.fleet.placement.explain import Explanation
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.revision.manifest import content_digest
from skerry.logic.fleet.summary.report import NOT_APPLIED, delivery_of, report_of
from skerry.logic.fleet.syncing.delivery import is_delivered
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.copies import copied, digest, labelled
from skerry.logic.fleet.translation.difference import OCCUPIED
from skerry.logic.fleet.translation.grants import NOT_GRANTED, covers, holds_namespaces, not_granted
from skerry.logic.fleet.translation.merging import KIND_WITHHELD, name_taken, withheld_kind
from skerry.logic.fleet.translation.sources import WatchKey, record_of

# A type of the mailbox's own, which says nothing about the edge.
_WITHOUT_REPORT = (Category.NATURED, Category.DENATURED, Category.MAILBOX_ONLY)


class Sent(NamedTuple):
    """The revision that a destination is sent; ``live`` is the one the workspace is at.

    ``digests`` are those of its objects; None when the revision cannot be read.
    """

    number: int
    live: int
    digests: Mapping[ObjectRef, str] | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lies on the way to one destination."""

    where: Explanation
    # The Location object, for its labels and annotations.
    location: Object | None
    # Whether the slices have the destination; the scheduler may not have got there yet.
    in_slice: bool
    # The mailbox's Workspace; None when there is none.
    mailbox: Object | None
    # Why the mailbox cannot be read, if it cannot.
    unreadable: str = ""
    sync_target: str = ""
    mailbox_name: str = ""
    # What grants let the workspace place here, and who says so; None: no grant is needed.
    rules: tuple[Rule, ...] | None = None
    granting: str = ""
    # Since when the edge has not been heard of; None while it is.
    silence: Silence | None = None
    # The revision it is sent, where the placement has a Rollout.
    sent: Sent | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """What is in the mailbox under the object's name; ``has_status``: edges report on the kind.

    ``would_act``: a copy would have effect on the hub, as on a foreign one. ``owner``: the path of
    the workspace whose copy it is, where that is another one.
    """

    object: Object | None
    has_status: bool = True
    would_act: bool = False
    owner: str | None = None


def way(
    selection: Link,
    subject: Subject,
    customizer: Object | None,
    around: Surroundings,
    copy: Copy,
) -> Chain:
    """Follow one object to one destination, as far as it gets.

    *selection* says whether the placement means the object.
    """
    return followed(_links(selection, subject, customizer, around, copy))


def chosen(around: Surroundings) -> Link:
    """Tell whether the Location is a destination of the placement."""
    where = around.where
    edit = "" if where.edit is None else str(where.edit)
    if not where.placed:
        reason = _location_reason(where)
        return Link("location", False, reason, where.reasons, edit)
    if where.held:
        return Link("location", True, "Held", where.reasons)
    if not around.in_slice:
        text = "the edge scheduler has not written it into the slice yet"
        return Link("location", False, "NotYetScheduled", (text,))
    return Link("location", True, edit=edit)


def _location_reason(where: Explanation) -> str:
    if not where.selected:
        return "LocationNotSelected"
    if where.refused:
        return NOT_GRANTED
    return "NoSyncTarget" if where.chosen else "PassedOver"


def _links(
    selection: Link,
    subject: Subject,
    customizer: Object | None,
    around: Surroundings,
    copy: Copy,
) -> Iterator[Link]:
    yield travelling(subject)
    yield selection
    yield chosen(around)
    if around.rules is not None:
        yield _granted(subject, around.rules, around.granting, copy)
    if around.sent is not None:
        link, is_live = _revision(subject, around.sent)
        yield link
        if not is_live:
            yield _mailbox(around)
            yield _older(copy)
            yield from _beyond(subject, around, copy)
            return
    result = customize(
        copied(subject.item.group_resource, subject.object), customizer, around.location
    )
    if isinstance(result, Withheld):
        problem = result.problem
        yield Link("customization", False, problem.reason, (problem.message,))
        return
    yield Link("customization", True)
    yield _mailbox(around)
    yield _copy(subject, result.object, copy)
    yield from _beyond(subject, around, copy)


def _beyond(subject: Subject, around: Surroundings, copy: Copy) -> Iterator[Link]:
    """Yield what follows the mailbox: whether the edge is heard of, and what it says."""
    silence = around.silence
    if silence and category_of(subject.item.group_resource) is not Category.MAILBOX_ONLY:
        text = f"what is there is not known: {around.sync_target} {silence.words}"
        yield Link("edge", None, silence.reason, (text,))
    yield from _at_the_edge(subject, copy)


def _revision(subject: Subject, sent: Sent) -> tuple[Link, bool]:
    """Tell whether the revision sent has the object, and whether as the workspace has it now."""
    item = subject.item._replace(cluster="")
    if sent.digests is None:
        text = f"revision {sent.number} is not there; what was sent before stays as it is"
        return Link("revision", None, "RevisionMissing", (text,)), False
    if (known := sent.digests.get(item)) is None:
        text = f"revision {sent.number} is sent here and does not have it"
        text += f"; the workspace is at {sent.live}" if sent.live != sent.number else ""
        return Link("revision", False, "NotInRevision", (text,)), False
    key = WatchKey("", item.group, "", item.resource)
    if known == content_digest(item, record_of(key, subject.object).digest):
        return Link("revision", True), True
    text = f"revision {sent.number} is sent here; the workspace has something else since"
    return Link("revision", True, "OtherRevision", (text,)), False


def _older(copy: Copy) -> Link:
    """Tell whether a copy is there of an object whose revision is not what the workspace has."""
    if copy.object is None:
        text = "the placement translator has not put it into the mailbox"
        return Link("copy", False, "NotInMailbox", (text,))
    return Link("copy", True)


def _granted(subject: Subject, rules: tuple[Rule, ...], granting: str, copy: Copy) -> Link:
    """Tell whether a grant lets the object through, in an inventory that enforces them."""
    item = subject.item
    if item.group_resource == NAMESPACES:
        passes = holds_namespaces(rules)
    else:
        brought = [(kind, scope) for kind in defined_by(subject) for scope in (True, False)]
        passes = covers(rules, item, brought)
    if passes:
        return Link("grant", True)
    held = copy.object is not None and is_projected(copy.object)
    problem = not_granted(item, granting, held=held)
    return Link("grant", False, "Held" if held else problem.reason, (problem.message,))


def _mailbox(around: Surroundings) -> Link:
    workspace = around.mailbox
    if workspace is None:
        text = "the SyncTarget has no mailbox workspace; does the mailbox controller run?"
        return Link("mailbox", False, "NoMailbox", (text,))
    phase = (workspace.get("status") or {}).get("phase", "")
    if workspace["metadata"].get("deletionTimestamp"):
        return Link("mailbox", False, "MailboxGoing", ("the mailbox is being deleted",))
    if phase != "Ready":
        return Link("mailbox", False, "MailboxNotReady", (f"the mailbox is in phase {phase!r}",))
    if around.unreadable:
        return Link("mailbox", None, "MailboxUnreadable", (around.unreadable,))
    return Link("mailbox", True)


def _copy(subject: Subject, wanted: Object, copy: Copy) -> Link:
    found = copy.object
    if found is None and copy.would_act:
        text = (
            f"{withheld_kind(subject.item).message}; --denatured-kinds of the controllers decides"
        )
        return Link("copy", False, KIND_WITHHELD, (text,))
    if found is None:
        text = "the placement translator has not put it into the mailbox"
        return Link("copy", False, "NotInMailbox", (text,))
    if not is_projected(found):
        text = "an object of that name is in the mailbox and is not a copy"
        return Link("copy", False, OCCUPIED, (text,))
    if subject.item.group_resource == NAMESPACES:
        return Link("copy", True)  # only its name need be the same
    same = digest(subject.item.group_resource, found) == digest(
        subject.item.group_resource, labelled(wanted)
    )
    if copy.owner is not None and not same:
        problem = name_taken(subject.item, copy.owner)
        edit = f"have its owner annotate it with {HAND_OVER_TO}, or use another name"
        return Link("copy", False, problem.reason, (problem.message,), edit)
    if not same:
        text = "the copy in the mailbox has an older content; the translator has not changed it yet"
        return Link("copy", None, "CopyDiffers", (text,))
    return Link("copy", True)


def _at_the_edge(subject: Subject, copy: Copy) -> Iterator[Link]:
    item, found = subject.item, copy.object
    if found is None or category_of(item.group_resource) is Category.MAILBOX_ONLY:
        return
    yield _applied(found)
    if copy.has_status and category_of(item.group_resource) not in _WITHOUT_REPORT:
        verdict = report_of(item.group, str(found.get("kind", "")), found).health
    else:
        verdict = delivery_of(found).health
        if verdict.status != "False":
            return  # such a kind is there or not
    holds = {"True": True, "False": False}.get(verdict.status)
    messages = (verdict.message,) if verdict.message else ()
    yield Link("health", holds, verdict.reason or "Healthy", messages)


def _applied(found: Object) -> Link:
    error = (found["metadata"].get("annotations") or {}).get(SYNC_ERROR, "")
    if error:
        reason, _, message = error.partition(": ")
        return Link("applied", False, reason, (message,))
    if not is_delivered(found):
        return Link("applied", False, NOT_APPLIED.reason, (NOT_APPLIED.message,))
    return Link("applied", True)
