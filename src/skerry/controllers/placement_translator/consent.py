"""What the grants of inventory workspaces mean to mailboxes.

Nothing is followed until there is a first LocationGrant or LocationConsent: then the paths and
labels of workspaces, and Locations with the SyncTargets that are their instances. While those have
not been read, nothing is decided about mailboxes whose inventory has grants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from skerry.api.edge import (
    ENFORCE,
    LOCATION_CONSENT_NAME,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    OBSERVE,
    Mailbox,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.consent import ConsentIndex, Touched
from skerry.logic.fleet.placement.consent_record import is_enforced
from skerry.logic.fleet.placement.grants import Rule, grant_of
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import is_being_deleted, location_of, sync_target_of

# A Location and the source workspaces whose objects there must be reconciled; None: all.
Concerned = tuple[ObjectRef, frozenset[str] | None]


class GrantedPlaces:
    """Grants and everything they depend on, updated by informer events."""

    def __init__(
        self,
        locations: Callable[[], Iterable[Object]],
        sources: Callable[[], Iterable[str]],
        follow: Callable[[], Sequence[asyncio.Event]],
        concern: Callable[[Iterable[Concerned]], None],
    ) -> None:
        """*locations* returns all there are, *sources* the workspace of each placement.

        *follow* begins to follow Workspaces and SyncTargets and returns what is set once all have
        been read. *concern* gets what must be reconciled again.
        """
        self._all_locations = locations
        self._all_sources = sources
        self._follow = follow
        self._concern = concern
        self._inventory = Inventory()
        self._index = ConsentIndex(self._inventory)
        # What is set once everything has been read; None until there is a first grant.
        self._read: Sequence[asyncio.Event] | None = None
        # Cache of rules; cleared whenever anything that grants depend on changes.
        self._rules: dict[tuple[str, ObjectRef, Mailbox], tuple[Rule, ...]] = {}

    # -- asking ------------------------------------------------------------------------------

    @property
    def is_used(self) -> bool:
        """Whether there ever was a grant since the start."""
        return self._read is not None

    def governs(self, mailbox: Mailbox) -> bool:
        """Return whether the inventory workspace of a mailbox has grants."""
        return self.is_used and self._index.mode(mailbox.cluster) is not None

    def is_ready(self, mailbox: Mailbox) -> bool:
        """Return whether everything has been read that decides about a mailbox's grants."""
        if self._read is None or all(event.is_set() for event in self._read):
            return True
        return not self.governs(mailbox)

    def is_enforced(self, inventory: str) -> bool:
        return self._index.mode(inventory) == ENFORCE

    def is_observed(self, inventory: str) -> bool:
        return self._index.mode(inventory) == OBSERVE

    def rules(self, source: str, location: ObjectRef, mailbox: Mailbox) -> Sequence[Rule]:
        """Return what *source* may place in a mailbox by way of a Location."""
        key = (source, location, mailbox)
        known = self._rules.get(key)
        if known is None:
            known = self._rules[key] = self._found(*key)
        return known

    def _found(self, source: str, location: ObjectRef, mailbox: Mailbox) -> tuple[Rule, ...]:
        number = self._inventory.location_number(location)
        if number is None:
            return ()
        if not any(each.uid == mailbox.uid for each in self._inventory.destinations(number)):
            return ()
        grants = self._index.admitting(source, number)
        return tuple(rule for grant in grants for rule in grant.rules)

    def refusing(self, mailbox: Mailbox) -> str:
        """Return, for people, the grants that decide about a mailbox."""
        grants = self._index.grants_in(mailbox.cluster)
        path = self.path(mailbox.cluster)
        counting = [grant for grant in grants if grant.enforces] or grants
        if len(counting) == 1:
            return f"{path}/{counting[0].ref.name}"
        return f"any grant of {path}"

    def path(self, cluster: str) -> str:
        """Return the path of a workspace, for people."""
        return self._index.path(cluster)

    # -- what happens ------------------------------------------------------------------------

    def grant_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        self._begin()
        if new is None or is_being_deleted(new):
            touched = self._index.remove_grant(ObjectRef.of(LOCATION_GRANTS.group_resource, obj))
        else:
            touched = self._index.put_grant(grant_of(new))
        self._changed([touched])

    def consent_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None or obj["metadata"]["name"] != LOCATION_CONSENT_NAME:
            return
        self._begin()
        self._changed(
            [
                self._index.put_memory(
                    ObjectRef.of(LOCATION_CONSENTS.group_resource, obj).cluster,
                    enforced=is_enforced(new),
                )
            ]
        )

    def workspace_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        cluster = ((obj or {}).get("spec") or {}).get("cluster", "")
        if obj is None or not cluster:
            return
        ref = ObjectRef.of(WORKSPACES.group_resource, obj)
        if new is None:
            touched = self._index.remove_workspace(ref)
        else:
            labels = new["metadata"].get("labels") or {}
            touched = self._index.put_workspace(ref, cluster, labels)
        self._changed(touched)

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        if not self.is_used:
            return
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(LOCATIONS.group_resource, obj)
        before = self._inventory.location(ref)
        if new is None or is_being_deleted(new):
            if before is not None:
                number = self._inventory.remove_location(ref)
                self._index.location_removed(number, before)
                self._rules.clear()
                self._concern([(ref, None)])
            return
        touched = self._put_location(new)
        if touched is not None:
            self._changed([touched])

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        if new is None or is_being_deleted(new):
            locations = self._inventory.remove_sync_target(
                ObjectRef.of(SYNC_TARGETS.group_resource, obj)
            )
        else:
            locations = self._inventory.put_sync_target(sync_target_of(new))
        if locations:
            self._changed([Touched(locations, None)])

    def source_added(self, cluster: str) -> None:
        """Take that a workspace has placements."""
        self._rules.clear()
        if self.is_used:
            self._index.add_source(cluster)

    def source_removed(self, cluster: str) -> None:
        """Take that a workspace has no placement any more."""
        self._rules.clear()
        if self.is_used:
            self._index.remove_source(cluster)

    def _begin(self) -> None:
        """Begin to follow what grants depend on, at the first sign of them."""
        if self._read is not None:
            return
        for location in self._all_locations():
            if not is_being_deleted(location):
                self._put_location(location)
        for cluster in self._all_sources():
            self._index.add_source(cluster)
        # Set before the handlers below receive their first objects.
        self._read = ()
        self._read = self._follow()

    def _put_location(self, obj: Object) -> Touched | None:
        new = location_of(obj)
        old = self._inventory.location(new.ref)
        if old == new:
            return None
        return self._index.location_put(self._inventory.put_location(new), old, new)

    def _changed(self, touched: Iterable[Touched]) -> None:
        self._rules.clear()
        self._concern(self._concerned(touched))

    def _concerned(self, touched: Iterable[Touched]) -> Iterator[Concerned]:
        for locations, sources in touched:
            if sources is None or sources:
                for number in locations:
                    yield self._inventory.location_at(number).ref, sources
