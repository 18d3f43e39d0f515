"""What grants of an inventory workspace let through, object by object.

Where the workspace enforces them, an object goes to a Location when a rule of some grant that
admits the object's workspace there covers its kind:

* A Namespace that only holds copies goes with any rule for namespaced objects. One that is asked
  for by name, with its labels, is a cluster-scoped object like any other.
* A CustomResourceDefinition is one as well, also where it only goes along with what it defines: at
  the edge it is there for everybody. An APIBinding goes along with what it brings, because it
  stays in the mailbox.
* What comes up from the edge needs a rule just as what goes down.

A Location counts only for SyncTargets that are its instances.

What is in a mailbox already and is not granted any more stays there as it is: it is neither
changed nor removed until its removal is confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from skerry.api.edge import Mailbox
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.translation.categories import BINDINGS, NAMESPACES
from skerry.logic.fleet.translation.selected import UpsyncSet
from skerry.logic.fleet.translation.workspaces import Scope

NOT_GRANTED = "NotGranted"
_EVERYTHING = ("*",)

# A type, and whether its objects are in namespaces.
Kind = tuple[GroupResource, bool]


class Consent(Protocol):
    """What translation asks of grants."""

    def is_enforced(self, inventory: str) -> bool:
        """Return whether an inventory workspace admits only what is granted."""

    def is_observed(self, inventory: str) -> bool:
        """Return whether its grants only observe."""

    def rules(self, source: str, location: ObjectRef, mailbox: Mailbox) -> Sequence[Rule]:
        """Return what the workspace *source* may place in a mailbox by way of a Location.

        Nothing where the mailbox's SyncTarget is no instance of the Location: who wrote a slice
        by hand may have named any two.
        """


class Grants(Consent, Protocol):
    """What a controller asks of grants beyond what they permit."""

    @property
    def is_used(self) -> bool:
        """Whether there ever was a grant."""

    def scopes(self, mailbox: Mailbox) -> tuple[Scope, ...]:
        """Return what must have been read to know the grants that decide about a mailbox."""


def covers(rules: Iterable[Rule], item: ObjectRef, brought: Iterable[Kind] = ()) -> bool:
    """Return whether *rules* let *item* through.

    *brought* are the kinds for the sake of which a binding goes along.
    """
    found = list(rules)
    namespaced = bool(item.namespace)
    if any(rule.covers(item.group_resource, namespaced=namespaced) for rule in found):
        return True
    if item.group_resource != BINDINGS:
        return False
    return any(rule.covers(kind, namespaced=scope) for kind, scope in brought for rule in found)


def holds_namespaces(rules: Iterable[Rule]) -> bool:
    """Return whether *rules* let a Namespace through that is there to hold copies."""
    return any(rule.namespaced or rule.covers(NAMESPACES, namespaced=False) for rule in rules)


def permitted(
    consent: Consent,
    source: str,
    mailbox: Mailbox,
    locations: Sequence[ObjectRef],
    item: ObjectRef,
    brought: Iterable[Kind] = (),
    *,
    bare: bool = False,
) -> tuple[ObjectRef, ...]:
    """Return by which of *locations* the *item* of a workspace may go to a mailbox.

    *bare*: it is a Namespace that is wanted for what is in it.
    """
    kinds = list(brought)
    return tuple(
        location
        for location in locations
        if (
            holds_namespaces(consent.rules(source, location, mailbox))
            if bare
            else covers(consent.rules(source, location, mailbox), item, kinds)
        )
    )


def granted_upsync(sets: Iterable[UpsyncSet], rules: Sequence[Rule]) -> Iterator[UpsyncSet]:
    """Yield what of *sets* may come up by *rules*."""
    for each in sets:
        found = tuple(_resources(each, rules))
        if found == each.resources:
            yield each
        elif found:
            yield replace(each, resources=found)


def _resources(each: UpsyncSet, rules: Sequence[Rule]) -> Iterable[str]:
    about = [rule for rule in rules if rule.groups is None or each.group in rule.groups]
    # Without namespaces a set is about cluster-scoped objects; with some it may be about both.
    fitting = [r for r in about if r.cluster_scoped or (r.namespaced and each.namespaces)]
    if each.resources != _EVERYTHING:
        return (
            name
            for name in each.resources
            if any(rule.resources is None or name in rule.resources for rule in fitting)
        )
    if any(r.resources is None and r.namespaced and r.cluster_scoped for r in fitting):
        return _EVERYTHING
    return sorted({name for rule in fitting for name in rule.resources or ()})


@lru_cache(maxsize=4096)
def not_granted(item: ObjectRef, refusing: str, *, held: bool) -> Problem:
    """Return the problem reported for an object that no grant covers.

    It is cached: thousands of mailboxes report the same one.
    """
    text = f"{item} is not granted by {refusing}"
    if held:
        text += " and stays as it is until its removal is confirmed"
    return Problem(NOT_GRANTED, text)
