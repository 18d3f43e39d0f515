"""What the grants of inventory workspaces mean to mailboxes.

Nothing is kept until there is a first LocationGrant or LocationConsent: then the paths and labels
of workspaces, and Locations with the SyncTargets that are their instances. While those have not
been read, rows of mailboxes whose inventory has grants are pending. Each change returns what it
concerns; nothing here marks or enqueues.

Grants are read twice, by the edge scheduler and here, and independently. Where they are enforced,
the scheduler lets no destination into a slice that is not granted; here each object is asked about,
by the rules of the grants that admit its workspace at a Location. So a slice that
somebody edits by hand brings nothing to an edge that its owner has not granted, and a grant for
ConfigMaps lets no Secret pass.

What is asked is asked of rows, thousands at a time, and mostly with the same answer: hence
``_rules``, which any change of an input clears as a whole. To clear less would be to know which of
its keys a label of a workspace reaches, and the cache is filled anew by the rows that are touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.consent import ConsentIndex, Touched
from skerry.logic.fleet.placement.consent_record import is_enforced
from skerry.logic.fleet.placement.grants import Rule, grant_of
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import is_being_deleted, location_of, sync_target_of
from skerry.logic.fleet.translation.workspaces import GRANTS, Scope

# A Location and the source workspaces whose objects there must be reconciled; None: all.
Concerned = tuple[ObjectRef, frozenset[str] | None]
_READ = (GRANTS,)


class GrantedPlaces:
    """Grants and everything they depend on, updated by informer events."""

    def __init__(self) -> None:
        self._inventory = Inventory()
        self._index = ConsentIndex(self._inventory)
        self._is_used = False
        # Cache of rules; cleared whenever anything that grants depend on changes.
        self._rules: dict[tuple[ClusterName, ObjectRef, Mailbox], tuple[Rule, ...]] = {}

    # -- asking ------------------------------------------------------------------------------

    @property
    def is_used(self) -> bool:
        """Whether there ever was a grant since the start."""
        return self._is_used

    def governs(self, mailbox: Mailbox) -> bool:
        """Return whether the inventory workspace of a mailbox has grants."""
        return self.is_used and self._index.mode(mailbox.cluster) is not None

    def scopes(self, mailbox: Mailbox) -> tuple[Scope, ...]:
        """Return what must have been read to know the grants that decide about a mailbox."""
        return _READ if self.governs(mailbox) else ()

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
        """Return the rules; none where the mailbox's SyncTarget is no instance of the Location."""
        number = self._inventory.location_number(location)
        if number is None:
            return ()
        if not any(each.uid == mailbox.uid for each in self._inventory.destinations(number)):
            return ()
        grants = self._index.admitting(source, number)
        return tuple(rule for grant in grants for rule in grant.rules)

    def refusing(self, inventory: ClusterName) -> str:
        """Return, for people, the grants that decide about mailboxes of an inventory workspace."""
        grants = self._index.grants_in(inventory)
        path = self.path(inventory)
        counting = [grant for grant in grants if grant.enforces] or grants
        if len(counting) == 1:
            return f"{path}/{counting[0].ref.name}"
        return f"any grant of {path}"

    def path(self, cluster: str) -> str:
        """Return the path of a workspace, for people."""
        return self._index.path(cluster)

    # -- changing ----------------------------------------------------------------------------

    def begin(self, locations: Iterable[Object], sources: Iterable[ClusterName]) -> None:
        """Keep up what grants depend on, from the first of them on; *sources* have placements."""
        self._is_used = True
        for location in locations:
            if not is_being_deleted(location):
                self._put_location(location)
        for cluster in sources:
            self._index.add_source(cluster)

    def grant_changed(self, old: Object | None, new: Object | None) -> list[Concerned]:
        obj = new or old
        if obj is None:
            return []
        if new is None or is_being_deleted(new):
            touched = self._index.remove_grant(ObjectRef.of(LOCATION_GRANTS.group_resource, obj))
        else:
            touched = self._index.put_grant(grant_of(new))
        return self._concerned([touched])

    def consent_changed(self, old: Object | None, new: Object | None) -> list[Concerned]:
        obj = new or old
        if obj is None or obj["metadata"]["name"] != LOCATION_CONSENT_NAME:
            return []
        cluster = ObjectRef.of(LOCATION_CONSENTS.group_resource, obj).cluster
        return self._concerned([self._index.put_memory(cluster, enforced=is_enforced(new))])

    def workspace_changed(self, old: Object | None, new: Object | None) -> list[Concerned]:
        obj = new or old
        cluster = ((obj or {}).get("spec") or {}).get("cluster", "")
        if obj is None or not cluster:
            return []
        ref = ObjectRef.of(WORKSPACES.group_resource, obj)
        if new is None:
            return self._concerned(self._index.remove_workspace(ref))
        labels = new["metadata"].get("labels") or {}
        return self._concerned(self._index.put_workspace(ref, cluster, labels))

    def location_changed(self, old: Object | None, new: Object | None) -> list[Concerned]:
        obj = new or old
        if obj is None or not self.is_used:
            return []
        if new is not None and not is_being_deleted(new):
            touched = self._put_location(new)
            return [] if touched is None else self._concerned([touched])
        ref = ObjectRef.of(LOCATIONS.group_resource, obj)
        before = self._inventory.location(ref)
        if before is None:
            return []
        self._index.location_removed(self._inventory.remove_location(ref), before)
        self._rules.clear()
        return [(ref, None)]

    def sync_target_changed(self, old: Object | None, new: Object | None) -> list[Concerned]:
        obj = new or old
        if obj is None:
            return []
        if new is None or is_being_deleted(new):
            ref = ObjectRef.of(SYNC_TARGETS.group_resource, obj)
            locations = self._inventory.remove_sync_target(ref)
        else:
            locations = self._inventory.put_sync_target(sync_target_of(new))
        return self._concerned([Touched(locations, None)]) if locations else []

    def source_added(self, cluster: ClusterName) -> None:
        """Take that a workspace has placements."""
        self._rules.clear()
        if self.is_used:
            self._index.add_source(cluster)

    def source_removed(self, cluster: ClusterName) -> None:
        """Take that a workspace has no placement any more."""
        self._rules.clear()
        if self.is_used:
            self._index.remove_source(cluster)

    def _put_location(self, obj: Object) -> Touched | None:
        new = location_of(obj)
        old = self._inventory.location(new.ref)
        if old == new:
            return None
        return self._index.location_put(self._inventory.put_location(new), old, new)

    def _concerned(self, touched: Iterable[Touched]) -> list[Concerned]:
        """Return what was touched by name, and let every rule be found anew."""
        found = list(touched)
        self._rules.clear()
        return [
            (self._inventory.location_at(number).ref, sources)
            for locations, sources in found
            if sources is None or sources
            for number in locations
        ]
