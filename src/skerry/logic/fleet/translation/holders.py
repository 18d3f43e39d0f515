"""Whose the copies of one mailbox are, as far as they and the objects placed there tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.revision.manifest import Manifest
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.ownership import Claim, Owned, first
from skerry.logic.fleet.translation.sources import Record


class Sent(NamedTuple):
    """A workspace's object that is sent to a mailbox: its record, and by whom.

    ``manifest`` is the revision that decides about it, where one does.
    """

    cluster: ClusterName
    record: Record
    placements: list[ObjectRef]
    manifest: Manifest | None = None

    @property
    def claim(self) -> Claim:
        return self.record.claim or Claim(self.cluster)


@dataclass(frozen=True, slots=True)
class Holders:
    """The copies of a mailbox by whose they are; ``find`` returns a record of it."""

    find: Callable[[ObjectRef], Record | None]

    def copy(self, item: ObjectRef) -> Record | None:
        """Return the copy that is there; None without one, and while it is being deleted."""
        found = self.find(item)
        is_copy = found is not None and found.projected and not found.being_deleted
        return found if is_copy else None

    def owning(self, item: ObjectRef, sent: Sequence[Sent]) -> Sent:
        """Return whose object the copy is; before there is one, whose it will be."""
        by_cluster = {each.cluster: each for each in sent}
        there = self.copy(item) if len(sent) > 1 else None
        if there is not None and there.owned is not None and there.owned.cluster in by_cluster:
            return by_cluster[there.owned.cluster]
        return by_cluster[first(each.claim for each in sent).cluster]

    def ungranted(
        self, item: ObjectRef, sent: Sequence[Sent], granted: Sequence[Sent]
    ) -> Sent | None:
        """Return the workspace whose copy is there though it is not among the *granted*."""
        without = {each.cluster: each for each in sent}
        for each in granted:
            without.pop(each.cluster, None)
        # Namespaces are shared.
        there = self.copy(item) if without and item.group_resource != NAMESPACES else None
        if there is None:
            return None
        if there.owned is not None:
            return without.get(there.owned.cluster)
        if any(each.record.digest == there.content for each in granted):
            return None
        same = (each for each in without.values() if each.record.digest == there.content)
        return next(same, None)


def asked_generation(
    sent: Iterable[Sent], owned: Owned | None, asking: Collection[ObjectRef]
) -> int:
    """Return the generation that a copy is to record; 0 when none of its owner's *asking* sends it.

    *owned* None: the copy records no owner, so everybody who sends it is.
    """
    for each in sent if asking else ():
        owns = owned is None or owned.cluster == each.cluster
        if owns and any(placement in asking for placement in each.placements):
            return each.record.generation
    return 0
