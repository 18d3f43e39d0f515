"""Which event changes which input table, and which rows of ``difference`` it touches.

Every handler does the same: it writes the change into the input tables, and marks the rows that
may differ by it, which enqueues their mailboxes. None of them decides anything. The work is
proportional to the change: a changed object touches its mailboxes, a changed destination what its
placement selects.

Marking too much costs time; marking too little leaves a copy wrong until something else happens to
it. So each handler argues from what a row of ``difference`` is computed from, and there are five
such things: what a placement selects, where it goes, what the source says (with its customizer and
the labels of the Location), what the mailbox has, and which kinds both sides serve. A handler
marks the rows of everything that reads the input it has just changed.

Completeness travels the same way. A watch that begins anew, a workspace whose kinds are not known,
a placement whose selector makes no sense: each is a scope that is incomplete until it is read, and
rows that depend on it wait (``logic.fleet.tables.completeness``). A handler that removes an input
therefore makes its scope incomplete or complete as well; forgetting to would let an absence that
nobody has seen become a deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skerry.api.edge import EDGE_PLACEMENTS, Mailbox, is_staged, mailbox_named
from skerry.api.kcp.resources import LOCATIONS
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef, namespace_ref
from skerry.controllers.placement_translator.activity import Activities
from skerry.controllers.placement_translator.consent import Concerned, GrantedPlaces
from skerry.controllers.placement_translator.feeds import WatchSet
from skerry.controllers.placement_translator.held import HeldObjects
from skerry.controllers.placement_translator.marking import TranslatorTables
from skerry.controllers.placement_translator.object_history import ObjectHistory
from skerry.controllers.placement_translator.records import (
    is_same,
    is_source,
    lean_value,
    location_terms,
    mailbox_cluster,
    placement_ref_of_slice,
    shown_placement,
)
from skerry.controllers.placement_translator.revision_events import RevisionEvents
from skerry.controllers.placement_translator.status import PlacementProblems
from skerry.kit.log import Logger
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.revision.noted import noted
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS, NAMESPACES
from skerry.logic.fleet.translation.desired import DEFINING
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.fleet.translation.selected import Malformed, What, placement_row
from skerry.logic.fleet.translation.sources import Record, Records, WatchKey
from skerry.logic.fleet.translation.workspaces import (
    BASIC_WATCHES,
    BINDING_WATCH,
    DEFINITION_WATCH,
    GRANTS,
    path_scope,
    selection_scope,
    types_scope,
)
from skerry.runtime.client import cluster_of

NAME = "placement-translator"
_NAMELESS: Object = {"metadata": {"name": ""}}

_log = Logger(NAME)


class EventHandlers(RevisionEvents):
    """What informers and watches call."""

    def __init__(
        self,
        tables: TranslatorTables,
        watches: WatchSet,
        problems: PlacementProblems,
        consent: GrantedPlaces,
        held: HeldObjects,
        activities: Activities,
        *,
        slices: Callable[[ObjectRef], list[Object]],
        locations: Callable[[], Iterable[Object]],
        enqueue_status: Callable[[ObjectRef], None],
        follow_grants: Callable[[], None],
        history: ObjectHistory | None = None,
    ) -> None:
        """*slices* returns the slices of a placement, *locations* every Location there is.

        *follow_grants* begins to follow what grants depend on; called at the first of them. What
        is sent is recorded in *history*, where there is one.
        """
        super().__init__(tables, activities, history)
        self._watches = watches
        self._problems = problems
        self._consent = consent
        self._held = held
        self._slices = slices
        self._locations = locations
        self._enqueue_status = enqueue_status
        self._follow_grants = follow_grants
        self._dirty.complete(GRANTS)
        for key in BASIC_WATCHES:
            watches.follow(key)

    # -- placements and slices ---------------------------------------------------------------

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        """Take what a placement selects; where it goes comes by its slices.

        A status or a label of it changes no row, and most events are that.
        """
        about = new or old
        if about is None:
            return
        placement = ObjectRef.of(EDGE_PLACEMENTS.group_resource, about)
        if new is None:
            _log.info("Delete", map="what", key=shown_placement(placement))
            self._placement_gone(placement)
            return
        self._enqueue_status(placement)
        if is_staged(new) and (old is None or not is_staged(old)):
            self._activities.touch([placement])
        if old is not None and old.get("spec") == new.get("spec"):
            return
        _log.info("Put", map="what", key=shown_placement(placement))
        self._activities.touch([placement])
        is_new = placement not in self._route.placements
        before, row = self._route.what(placement), placement_row(new)
        scope = selection_scope(placement)
        (self._dirty.incomplete if isinstance(row, Malformed) else self._dirty.complete)(scope)
        if is_new:
            self._follow(placement.cluster)
        if self._route.put_placement(placement, row):
            self._consent.source_added(placement.cluster)
        if is_new:
            self._put_slices(placement, self._slices(placement))
        self._settle()
        if before is not None and isinstance(row, What) and before.aggregates != row.aggregates:
            where = self._route.destination.of(placement)
            self._mark_all(self._items(placement, where), where)
        # What comes up from the edge, and whose versions count, is not among what is selected.
        definitions = (
            served.definition
            for served, _ in self._workspaces.travelling(placement.cluster)
            if served.definition is not None
        )
        self._mark_all(definitions, self._route.destination.of(placement))

    def _placement_gone(self, placement: ObjectRef) -> None:
        if placement not in self._route.placements:
            return
        if self._route.drop_placement(placement):
            self._consent.source_removed(placement.cluster)
        self._put_revisions(placement, {})
        self._settle()
        # What it might have selected is not unknown any more.
        self._dirty.drop(selection_scope(placement))
        self._leave(placement.cluster)

    def slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Take where a placement goes, from all of its slices together.

        A placement that has lost all of them keeps its destinations until there are others, or
        until it is gone itself: a slice that somebody deleted by hand empties no mailbox.

        Both owners are asked, should a slice have changed hands; one page alone says nothing about
        who is missing from it.
        """
        found = [piece for piece in (old, new) if piece is not None]
        for placement in sorted({placement_ref_of_slice(piece) for piece in found}):
            pieces = self._slices(placement)
            _log.info("Put" if pieces else "Delete", map="where", key=shown_placement(placement))
            # A placement that is there but has no slice has not been resolved again yet; what
            # it had before is still the best that is known.
            if placement in self._route.placements and pieces:
                self._put_slices(placement, pieces)
                self._settle()
                self._problems.destinations_changed(placement)

    # -- customization -----------------------------------------------------------------------

    def customizer_changed(self, old: Object | None, new: Object | None) -> None:
        """Mark what names a customizer, wherever it goes; the rule itself is read when asked."""
        about = new or old
        if about is None:
            return
        metadata = about["metadata"]
        name = CustomizerName(metadata.get("namespace", ""), metadata["name"])
        cluster = cluster_of(about)
        for records in self._workspaces.all_records():
            for item in records.customized_by(cluster, name):
                self._mark_item(cluster, item)
                self._activities.touch(self._route.sending(cluster, item))

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        """Mark what is customized for a Location whose labels are others now."""
        self._mark_concerned(self._consent.location_changed(old, new))
        about = new or old
        if about is None or (
            old is not None and new is not None and location_terms(old) == location_terms(new)
        ):
            return
        location = ObjectRef.of(LOCATIONS.group_resource, about)
        for placement in self._route.at_location(location):
            items = [*self._route.customized_items(placement), CONFIG]
            for mailbox, locations in self._route.destination.of(placement).items():
                if location in locations:
                    self.mark(mailbox, {*items, *self._revisions.items(placement, [mailbox])})

    # -- grants ------------------------------------------------------------------------------

    def grant_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a grant; from the first on, rows wait until all that grants depend on is read."""
        about = new or old
        if about is None:
            return
        self._use_grants()
        inventory = cluster_of(about)
        before = self._consent.refusing(inventory)
        self._mark_concerned(self._consent.grant_changed(old, new))
        if self._consent.refusing(inventory) != before:
            # What is refused stays so, whoever it is said to be refused by.
            for mailbox, items in self._held.noted(inventory):
                self.mark(mailbox, items)

    def consent_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a LocationConsent: one that enforces does so without any grant, too."""
        self._use_grants()
        self._mark_concerned(self._consent.consent_changed(old, new))

    def granted_workspace_changed(self, old: Object | None, new: Object | None) -> None:
        self._mark_concerned(self._consent.workspace_changed(old, new))

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        self._mark_concerned(self._consent.sync_target_changed(old, new))

    def grants_read(self) -> None:
        """Take that everything grants depend on has been read."""
        self._dirty.complete(GRANTS)

    def _use_grants(self) -> None:
        if not self._consent.is_used:
            self._dirty.incomplete(GRANTS)
            sources = {placement.cluster for placement in self._route}
            self._consent.begin(self._locations(), sorted(sources))
            self._follow_grants()

    def _mark_concerned(self, concerned: Iterable[Concerned]) -> None:
        """Mark what goes to Locations of which grants say something else now."""
        by_placement: dict[ObjectRef, set[ObjectRef]] = {}
        for location, sources in concerned:
            for placement in self._route.at_location(location):
                if sources is None or placement.cluster in sources:
                    by_placement.setdefault(placement, set()).add(location)
        for placement in sorted(by_placement):
            there = [
                mailbox
                for mailbox, by in self._route.destination.of(placement).items()
                if not by_placement[placement].isdisjoint(by)
            ]
            self._mark_all(self._items(placement, there), there)

    # -- workspaces and their kinds ----------------------------------------------------------

    def workspace_changed(self, old: Object | None, new: Object | None) -> None:
        """Take that a mailbox has come, gone, or stands for another logical cluster now."""
        before, now = mailbox_cluster(old), mailbox_cluster(new)
        mailbox = mailbox_named((new or old or _NAMELESS)["metadata"]["name"])
        if before == now or mailbox is None:
            return
        if before:
            self._mailboxes.remove(mailbox)
            self._leave(before)
            self._dirty.forget(mailbox)
            self._problems.forget_mailbox(mailbox)
            for placement in sorted(self._route.destination.having(mailbox)):
                self._problems.destinations_changed(placement)
            self._held.forget_mailbox(mailbox)
        if now:
            self._mailboxes.put(mailbox, now)
            self._follow(now)
            self._mark_mailbox(mailbox, now)

    def _follow(self, cluster: ClusterName) -> None:
        """Follow the kinds of a workspace once more; each caller leaves it once (``_leave``)."""
        self._workspaces.follow(cluster)
        self._retype(cluster)

    def _leave(self, cluster: ClusterName) -> None:
        for key in self._workspaces.leave(cluster):
            self._stop(key)
        if not self._workspaces.follows(cluster):
            self._dirty.drop(types_scope(cluster))
            self._dirty.drop(path_scope(cluster))

    def _stop(self, key: WatchKey) -> None:
        """Follow a kind no longer; what it brought counts as gone."""
        self._watches.stop(key)
        records = self._workspaces.unwatch(key)
        self._dirty.drop(key)
        for record in list(records or ()):
            self.removed(records, record)  # type: ignore[arg-type]  # there are records

    def _retype(self, cluster: ClusterName) -> None:
        """Have a workspace serve what its bindings and definitions say, once all were read."""
        scopes = self._dirty.scopes
        basics = scopes.is_complete(BINDING_WATCH) and scopes.is_complete(DEFINITION_WATCH)
        if not (basics and self._workspaces.knows_hub and self._workspaces.follows(cluster)):
            return
        retyped = self._workspaces.retype(cluster)
        if retyped is not None:
            for key in retyped.stop:
                self._stop(key)
            for key in retyped.follow:
                self.follow(key)
            self._retyped(cluster, retyped.kinds)
        if self._workspaces.knows_types(cluster):
            self._dirty.complete(types_scope(cluster))
        else:
            self._dirty.incomplete(types_scope(cluster))

    def _retyped(self, cluster: ClusterName, kinds: frozenset[GroupResource]) -> None:
        """Mark what a change of kinds touches: as a source everything, as a mailbox these kinds."""
        self._route.put_candidates(cluster)
        self._settle()
        for placement in self._route.in_cluster(cluster):
            where = self._route.destination.of(placement)
            self._mark_all(self._items(placement, where), where)
        mailbox = self._mailboxes.at(cluster)
        if mailbox is not None:
            self._mark_mailbox(mailbox, cluster, kinds)

    def retype_all(self) -> None:
        """Have every workspace's kinds derived anew: what all of them depend on is different."""
        self._workspaces.forget_types()
        for cluster in self._workspaces.followed:
            self._retype(cluster)

    def schema_changed(self, old: Object | None, new: Object | None) -> None:
        """Take an APIResourceSchema, which workspaces share by binding; seldom, and to all."""
        if old is None or new is None or old["spec"] != new["spec"]:
            self.retype_all()

    # -- watches -----------------------------------------------------------------------------

    def follow(self, key: WatchKey) -> None:
        """Follow a watch that rows are pending on; most are followed already."""
        self._workspaces.watch(key)
        self._watches.follow(key)

    def path_read(self, cluster: ClusterName, path: str) -> None:
        """Take the path of a workspace that rows are pending on."""
        if self._workspaces.follows(cluster):
            self._workspaces.learn_path(cluster, path)
            self._dirty.complete(path_scope(cluster))

    def watch_started(self, key: WatchKey) -> None:
        """Take that a watch begins from the beginning: what it showed may be old by now."""
        self._dirty.incomplete(key)
        if key in (BINDING_WATCH, DEFINITION_WATCH):
            for cluster in self._workspaces.followed:
                self._dirty.incomplete(types_scope(cluster))

    def watch_synced(self, key: WatchKey) -> None:
        """Take that everything of a watch has been read."""
        if self._dirty.scopes.is_complete(key):
            return
        self._dirty.complete(key)
        if key in (BINDING_WATCH, DEFINITION_WATCH):
            self.retype_all()

    # -- objects -----------------------------------------------------------------------------

    def put(self, records: Records, record: Record) -> None:
        """Take a new state of an object."""
        if record.system and not records.matters(record):
            self.removed(records, record)
        elif records.is_news(record):
            old = records.put(record)
            self._object_changed(records, old, record)

    def removed(self, records: Records, last: Record) -> None:
        """Take that an object has gone."""
        old = records.remove(last)
        if old is not None:
            self._object_changed(records, old, None)

    def _object_changed(self, records: Records, old: Record | None, new: Record | None) -> None:
        about = new or old
        if about is None:
            return
        if records.kind in DEFINING and lean_value(old) != lean_value(new):
            self._retype(about.cluster)
        mailbox = self._mailboxes.at(about.cluster)
        if mailbox is not None:
            self._copy_changed(mailbox, records, old, new)
        if not records.key.presence and self._route.in_cluster(about.cluster):
            self._source_changed(records, about, old, new)

    def _copy_changed(
        self, mailbox: Mailbox, records: Records, old: Record | None, new: Record | None
    ) -> None:
        """Mark what an object in a mailbox makes differ: itself, and what waited for it to go."""
        if old is not None and new is not None and is_same(old, new):
            return
        about = new or old
        if about is not None and not records.key.presence:
            # What is no copy matters only where something of its name may be wanted.
            copy = about.projected or (old is not None and old.projected)
            if copy or (not about.system and self._route.destination.having(mailbox)):
                self.mark(mailbox, [records.ref(about)])
        if about is not None and not about.namespace and self._consent.governs(mailbox):
            # The SyncerConfig lists what is held from when it is seen to be there until it goes.
            self.mark(mailbox, [CONFIG])
        if new is None and old is not None:
            if old.namespace:
                # Its namespace may have been waiting for this one to go.
                self.mark(mailbox, [namespace_ref(old.namespace)])
            elif records.kind == NAMESPACES:
                self._mark_room(mailbox, old.name)

    def _mark_room(self, mailbox: Mailbox, namespace: str) -> None:
        """Mark what belongs into a namespace that has gone from a mailbox and may come anew."""
        for placement in sorted(self._route.destination.having(mailbox)):
            cluster = placement.cluster
            held = self._revisions.items(placement, [mailbox])
            if held:
                self._mark_all((each for each in held if each.namespace == namespace), [mailbox])
            if placement in self._route.choosing(cluster, namespace):
                items = self._route.items_within(cluster, namespace)
                self._mark_all(items, [mailbox])

    def _source_changed(
        self, records: Records, about: Record, old: Record | None, new: Record | None
    ) -> None:
        """Mark what a source makes differ, and note that its placements send something else."""
        cluster, item = about.cluster, records.ref(about)
        if self._activities:
            self._touch_sending(cluster, item, old, new)
        self._record_revision(records, item, old, new)
        if self._workspaces.records(cluster, item.group_resource) is not records:
            # The same objects at another version, or another kind of the same name.
            self._mark_item(cluster, item)
        elif item.namespace:
            self._mark_item(cluster, item)
            if is_source(old) != is_source(new):
                self._mark_definition(records, cluster, item)
        else:
            self._cluster_scoped_changed(cluster, item, new)

    def _mark_definition(self, records: Records, cluster: ClusterName, item: ObjectRef) -> None:
        """Have what defines a kind evaluated when its first object comes or its last goes."""
        served = self._workspaces.served(cluster, item.group_resource)
        if served is None or served.definition is None:
            return
        within = records.within(cluster, item.namespace).values()
        if sum(record.is_source for record in within) <= 1:
            choosing = self._route.choosing(cluster, item.namespace)
            self._mark_all([served.definition], self._route.mailboxes(choosing))

    def _cluster_scoped_changed(
        self, cluster: ClusterName, item: ObjectRef, new: Record | None
    ) -> None:
        """Take the labels of an object in no namespace, which decide what selects it."""
        labels = new.labels if new is not None and new.is_source else None
        self._route.put_candidate(cluster, item, labels)
        self._settle()
        if item.group_resource in (BINDINGS, DEFINITIONS):
            everybody = self._route.in_cluster(cluster)
            self._mark_all([item], self._route.mailboxes(everybody))
        else:
            self._mark_item(cluster, item)

    def config_changed(self, old: Object | None, new: Object | None) -> None:
        """Have a SyncerConfig compared that somebody has changed; its status is the syncer's.

        All that matters here of a status is that there is one (``decide``).
        """
        about = new or old
        if about is None or (old is not None and new is not None and _says(old) == _says(new)):
            return
        mailbox = self._mailboxes.at(cluster_of(about))
        if mailbox is not None:
            self.mark(mailbox, [CONFIG])


def _says(config: Object) -> tuple[Object, str, bool]:
    """Return what a SyncerConfig says, and whether it has a status."""
    return config["spec"], noted(config), "status" in config
