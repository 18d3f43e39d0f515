"""Is an object meant by a placement, and if not, which term fails?

Whether it is meant, the chain itself is asked (``translation.selected``): an object in a namespace
is meant with its namespace, by the labels of the latter; a cluster-scoped one by name or by its own
labels, entry by entry. Definitions of kinds that go down or come up go along unasked: an edge
without the CustomResourceDefinition could not hold the object. What is added here is why.

A refusal names every term that fails, with the label as it is, and the smallest edit of labels
after which the answer would be the other one; where none of one object does, there is no edit. The
edit is not guessed: the chain is asked again with it before it is offered.

    an object in a namespace    by the labels of its Namespace, never by its own
    a Namespace                 by its own labels; naming it adds these to what is sent
    any other                   by an entry that has its kind, and its name or its labels
    what defines a kind         as any other, or with an object of that kind
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from skerry.api.edge import is_system_object
from skerry.api.edge_categories import Category, category_of
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.explanation.links import Link
from skerry.logic.fleet.placement.edits import (
    LabelEdits,
    joining_edits,
    label_words,
    relabelled,
)
from skerry.logic.fleet.placement.terms import Terms, failing, terms_of
from skerry.logic.fleet.translation.categories import (
    BINDINGS,
    DEFINITIONS,
    is_edge_object,
)
from skerry.logic.fleet.translation.selected import (
    CHOSEN,
    NamedObjects,
    What,
    deciding,
    sends,
)

# Stands for any value that nobody mentions.
_UNHEARD_OF = "other"

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """An object of the workload's workspace; ``within`` are its namespace's labels."""

    item: ObjectRef
    object: Object
    # None: the namespace is not there (any more).
    within: Labels | None = None

    @property
    def labels(self) -> Labels:
        return self.object["metadata"].get("labels") or {}


def travelling(subject: Subject) -> Link:
    """Tell whether objects like this one go to edges at all.

    A kind that ends in the mailbox holds here: it is sent, and its chain has no step at the edge.
    """
    item = subject.item
    category = category_of(item.group_resource)
    if category is Category.MAILBOX_ONLY:
        text = f"{item.group_resource} goes to the mailbox and not on to the edge"
        return Link("category", True, "MailboxOnly", (text,))
    if not category.to_mailbox:
        reason = "UnsupportedKind" if category is Category.UNSUPPORTED else "NotForTheEdge"
        return Link("category", False, reason, (f"{item.group_resource}: {category.value}",))
    if is_system_object(item.group_resource, subject.object):
        text = "every workspace has its own such object, which is never copied"
        return Link("category", False, "SystemObject", (text,))
    if is_edge_object(item.group_resource, subject.object):
        text = "every mailbox has its own such object for its edge, which is never copied"
        return Link("category", False, "SystemObject", (text,))
    return Link("category", True)


def selected(what: What | None, subject: Subject) -> Link:
    """Tell whether a placement means the object, by which term not, and the smallest edit.

    With a malformed selector that is unknown, and not no: what is there already stays.
    """
    if what is None:
        text = "a selector of the placement is malformed, so it is not known what it means"
        return Link("selection", None, "InvalidSelector", (text,))
    item = subject.item
    candidate, why = deciding(item)
    labels = subject.within if item.namespace else subject.labels
    if labels is None:
        text = f"there is no Namespace {item.namespace}"
        return Link("selection", False, "NamespaceMissing", (text,))
    if why == CHOSEN:
        return _by_namespace(what, candidate, labels)
    return _by_name(what, subject)


def selections(what: What | None, subjects: Sequence[Subject]) -> list[Link]:
    """Return for each object whether a placement means it, or needs it for what it means.

    What defines a placed kind goes along unasked. Which kinds are placed is known only when all
    objects have been asked, hence the second pass; it turns a no around and never a yes.
    """
    found = [selected(what, subject) for subject in subjects]
    placed = {
        subject.item.group_resource
        for subject, link in zip(subjects, found, strict=True)
        if link.holds and travelling(subject).holds
    }
    return [
        link if link.holds else _implied(what, subject, placed) or link
        for subject, link in zip(subjects, found, strict=True)
    ]


def _implied(
    what: What | None, subject: Subject, placed: AbstractSet[GroupResource]
) -> Link | None:
    """Return that a definition goes along with what it defines; None when it need not."""
    if what is None:
        return None
    needed = sorted(
        str(kind) for kind in defined_by(subject) if kind in placed or what.upsyncs(kind)
    )
    if not needed:
        return None
    return Link("selection", True, "Implied", (f"it defines {', '.join(needed)}",))


def defined_by(subject: Subject) -> Iterator[GroupResource]:
    """Yield the types that a CustomResourceDefinition or an APIBinding brings."""
    obj = subject.object
    if subject.item.group_resource == DEFINITIONS:
        spec = obj.get("spec") or {}
        yield GroupResource(spec.get("group", ""), (spec.get("names") or {}).get("plural", ""))
    elif subject.item.group_resource == BINDINGS:
        for bound in (obj.get("status") or {}).get("boundResources") or ():
            yield GroupResource(bound.get("group", ""), bound.get("resource", ""))


def _by_namespace(what: What, namespace: ObjectRef, labels: Labels) -> Link:
    """Answer by the one selector of Namespaces, with an edit of the Namespace either way."""
    terms, who = terms_of(what.namespaces) or (), f"Namespace {namespace.name}"
    if sends(what, namespace, labels):
        return Link("selection", True, edit=_leaving(terms, who))
    edits = joining_edits(terms, labels)
    if edits is not None and not sends(what, namespace, relabelled(labels, edits)):
        edits = None
    return Link(
        "selection",
        False,
        "NamespaceNotSelected",
        tuple(_failures("namespaceSelector", terms, labels)),
        label_edit(who, edits),
    )


def _by_name(what: What, subject: Subject) -> Link:
    """Answer by the entries, of which one is enough; a yes comes without an edit.

    No label takes back an object that an entry has by name. Joining needs an entry of its kind:
    for any other the edit would be one of the placement.
    """
    item, labels, named = subject.item, subject.labels, what.named
    if sends(what, item, labels):
        return Link("selection", True)
    if not named:
        text = "spec.nonNamespacedObjects is empty, which selects nothing"
        return Link("selection", False, "ObjectNotSelected", (text,))
    messages = [
        message
        for number, each in enumerate(named)
        for message in _entry_failures(f"nonNamespacedObjects[{number}]", each, subject)
    ]
    found = [
        edits
        for each in named
        if each.is_about(item)
        for selector in each.selectors
        if (edits := joining_edits(terms_of(selector) or (), labels)) is not None
        and sends(what, item, relabelled(labels, edits))
    ]
    who = f"{item.group_resource} {item.name}"
    edit = label_edit(who, min(found, key=len, default=None))
    return Link("selection", False, "ObjectNotSelected", tuple(messages), edit)


def _entry_failures(path: str, entry: NamedObjects, subject: Subject) -> Iterator[str]:
    """Yield what fails of an entry: its kind, or else both its names and its selectors."""
    item, labels = subject.item, subject.labels
    if entry.group != item.group:
        yield f"{path}: apiGroup is {entry.group!r}; it is {item.group!r}"
    elif not entry.is_about(item):
        yield f"{path}: {item.resource!r} is not among the resources"
    else:
        yield f"{path}: {item.name!r} is not among the resourceNames"
        for number, selector in enumerate(entry.selectors):
            terms = terms_of(selector) or ()
            yield from _failures(f"{path}.labelSelectors[{number}]", terms, labels)


def _failures(path: str, terms: Terms, labels: Labels) -> Iterator[str]:
    for key, term in failing(terms, labels):
        seen = labels.get(key)
        found = "it is absent" if seen is None else f"it is {seen!r}"
        yield f"{path}: label {key!r} must satisfy {str(term)!r}; {found}"


def _leaving(terms: Terms, who: str) -> str:
    """Return the smallest edit after which *terms* no longer hold: one label is always enough."""
    for key, term in terms:
        # Removing a label comes first, as the edit that is easiest to say.
        for value in (None, *sorted(term.values), _UNHEARD_OF):
            if not term.admits(value):
                return label_edit(who, ((key, value),))
    return ""


def label_edit(who: str, edits: LabelEdits | None) -> str:
    """Return a label change in words; empty when there is none."""
    return f"label {who}: {label_words(edits)}" if edits else ""
