"""Which event makes what in which mailbox need a look."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skerry.api.edge import (
    Mailbox,
    edge_placement_ref,
    location_ref,
    mailbox_named,
    placement_of_slice,
)
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.controllers.placement_translator.consent import Concerned, GrantedPlaces
from skerry.controllers.placement_translator.feeds import Feed, Record
from skerry.controllers.placement_translator.held import HeldObjects
from skerry.controllers.placement_translator.mailboxes import Mailboxes, mailbox_cluster
from skerry.controllers.placement_translator.marks import CONFIG, Marks
from skerry.controllers.placement_translator.problems import Problems
from skerry.controllers.placement_translator.relations import Placement, Relations
from skerry.controllers.placement_translator.resolve import Resolver
from skerry.controllers.placement_translator.workspaces import Feeds, Workspaces
from skerry.kit.log import Logger
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS, NAMESPACES
from skerry.logic.fleet.translation.what import what_of, where_of
from skerry.logic.machinery.selectors import SelectorError
from skerry.runtime.client import cluster_of

NAME = "placement-translator"
EDGE_PLACEMENTS = GroupVersionResource("edge.kcp.io", "v1alpha1", "edgeplacements")
SLICES = GroupVersionResource("edge.kcp.io", "v1alpha1", "singleplacementslices")
CUSTOMIZERS = GroupVersionResource("edge.kcp.io", "v1alpha1", "customizers")
SYNCER_CONFIGS = GroupVersionResource("edge.kcp.io", "v1alpha1", "syncerconfigs")
LOCATIONS = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "locations")
SYNC_TARGETS = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")
WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
SCHEMAS = GroupVersionResource("apis.kcp.io", "v1alpha1", "apiresourceschemas")

# What of these is wanted depends on everything else in a workspace.
_BASIC = (BINDINGS, DEFINITIONS, NAMESPACES)

_NAMELESS: Object = {"metadata": {"name": ""}}

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that is known, each part kept up by what happens."""

    feeds: Feeds
    workspaces: Workspaces
    relations: Relations
    mailboxes: Mailboxes


class Waking:
    """Turns changes into marks."""

    def __init__(
        self,
        known: Known,
        resolver: Resolver,
        marks: Marks,
        problems: Problems,
        slices: Callable[[ObjectRef], list[Object]],
        look_at_status: Callable[[ObjectRef], None],
        *,
        consent: GrantedPlaces,
        held: HeldObjects,
    ) -> None:
        """*slices* returns the slices of a placement."""
        self._consent = consent
        self._held = held
        self._feeds = known.feeds
        self._workspaces = known.workspaces
        self._relations = known.relations
        self._mailboxes = known.mailboxes
        self._resolver = resolver
        self._marks = marks
        self._problems = problems
        self._slices = slices
        self._look_at_status = look_at_status

    # What is wanted.

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        about = new or old
        if about is None:
            return
        name = edge_placement_ref(cluster_of(about), about["metadata"]["name"])
        if new is None:
            _log.info("Delete", map="what", key=_shown(name))
            self._placement_gone(name)
            return
        self._look_at_status(name)
        if old is not None and old.get("spec") == new.get("spec"):
            return
        _log.info("Put", map="what", key=_shown(name))
        placement = self._relations.get(name)
        if placement is None:
            placement = self._relations.add(name)
            self._consent.source_added(name.cluster)
            self._workspaces.follow(name.cluster)
            self._relations.set_where(name, where_of(self._slices(name)))
        before = set(self._relations.items(placement))
        try:
            self._relations.set_what(name, what_of(new))
        except SelectorError:
            self._relations.set_what(name, None)
        self._mark_whole(placement, placement.where, before)

    def _placement_gone(self, name: ObjectRef) -> None:
        placement = self._relations.get(name)
        if placement is None:
            return
        items, mailboxes = set(self._relations.items(placement)), list(placement.where)
        self._relations.remove(name)
        if not self._relations.in_cluster(name.cluster):
            self._consent.source_removed(name.cluster)
        for mailbox in mailboxes:
            self._marks.mark(mailbox, {*items, CONFIG, *self._resolver.rivals(mailbox)})
        self._workspaces.leave(name.cluster)

    def slice_changed(self, old: Object | None, new: Object | None) -> None:
        found = [piece for piece in (old, new) if piece is not None]
        for name in sorted({_owner(piece) for piece in found}):
            pieces = self._slices(name)
            _log.info("Put" if pieces else "Delete", map="where", key=_shown(name))
            placement = self._relations.get(name)
            # A placement that is there but has no slice has not been resolved again yet; what
            # it had before is still the best that is known.
            if placement is not None and pieces:
                self._where_changed(placement, where_of(pieces))

    def _where_changed(
        self, placement: Placement, where: dict[Mailbox, tuple[ObjectRef, ...]]
    ) -> None:
        old = placement.where
        if old == where:
            return
        changed = [
            mailbox
            for mailbox in sorted(old.keys() | where.keys())
            if old.get(mailbox) != where.get(mailbox)
        ]
        self._relations.set_where(placement.name, where)
        self._mark_whole(placement, changed)

    def _mark_whole(
        self, placement: Placement, mailboxes: Iterable[Mailbox], also: Iterable[ObjectRef] = ()
    ) -> None:
        items = {*self._relations.items(placement), *also, CONFIG}
        for mailbox in mailboxes:
            self._marks.mark(mailbox, items.union(self._resolver.rivals(mailbox)))

    def customizer_changed(self, old: Object | None, new: Object | None) -> None:
        about = new or old
        if about is None:
            return
        metadata = about["metadata"]
        name = CustomizerName(metadata.get("namespace", ""), metadata["name"])
        cluster = cluster_of(about)
        for feed in self._feeds:
            for item in feed.customized_by(cluster, name):
                self._mark_item(cluster, item)

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        about = new or old
        if about is None or (old is not None and new is not None and _says(old) == _says(new)):
            return
        location = location_ref(cluster_of(about), about["metadata"]["name"])
        for name in self._relations.at_location(location):
            placement = self._relations.get(name)
            if placement is None:
                continue
            items = [*self._relations.customized_items(placement), CONFIG]
            for mailbox, locations in placement.where.items():
                if location in locations:
                    self._marks.mark(mailbox, items)

    def consent_changed(self, concerned: Iterable[Concerned]) -> None:
        """Mark what goes to Locations of which grants say something else now."""
        by_placement: dict[ObjectRef, set[ObjectRef]] = {}
        for location, sources in concerned:
            for name in self._relations.at_location(location):
                if sources is None or name.cluster in sources:
                    by_placement.setdefault(name, set()).add(location)
        for name in sorted(by_placement):
            placement = self._relations.get(name)
            if placement is not None:
                where = placement.where.items()
                there = [m for m, by in where if not by_placement[name].isdisjoint(by)]
                self._mark_whole(placement, there)

    # Workspaces.

    def workspace_changed(self, old: Object | None, new: Object | None) -> None:
        before, now = mailbox_cluster(old), mailbox_cluster(new)
        name = mailbox_named((new or old or _NAMELESS)["metadata"]["name"])
        if before == now or name is None:
            return
        if before:
            self._mailboxes.remove(name)
            self._workspaces.leave(before)
            self._marks.forget(name)
            self._problems.forget_mailbox(name)
            self._held.forget_mailbox(name)
        if now:
            self._mailboxes.put(name, now)
            self._workspaces.follow(now)
            self._mark_mailbox(name, now)

    def _mark_mailbox(
        self, name: Mailbox, cluster: str, types: frozenset[GroupResource] | None = None
    ) -> None:
        """Mark everything that is or should be in a mailbox, or that of some types."""
        items = {
            feed.item(record)
            for _, feed in self._workspaces.followed_types(cluster)
            if types is None or feed.key.group_resource in types
            for record in feed.everything(cluster)
            if record.projected
        }
        for placement in self._relations.placements_at(name):
            wanted = self._relations.items(placement)
            items.update(item for item in wanted if types is None or item.group_resource in types)
        self._marks.mark(name, {*items, CONFIG})

    def retyped(self, cluster: str, types: frozenset[GroupResource]) -> None:
        """Take that a workspace serves some *types* differently, or not any more, or now."""
        for name in sorted(self._relations.in_cluster(cluster)):
            placement = self._relations.get(name)
            if placement is not None:
                before = set(self._relations.items(placement))
                self._relations.set_what(name, placement.what)
                self._mark_whole(placement, placement.where, before)
        mailbox = self._mailboxes.name(cluster)
        if mailbox is not None:
            self._mark_mailbox(mailbox, cluster, types)

    def schema_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old["spec"] == new["spec"]:
            return
        self._workspaces.retype_all()

    def feed_synced(self, feed: Feed) -> None:
        """Take that everything of a type has been read: look again at what waited for it."""
        if feed in (self._workspaces.bindings, self._workspaces.definitions):
            self._workspaces.retype_all()
        if feed.key.group_resource in _BASIC:
            self._marks.bring_back()
        else:
            self._marks.bring_back({feed.key.group_resource, *_BASIC, CONFIG.group_resource})

    # Objects.

    def object_changed(self, feed: Feed, old: Record | None, new: Record | None) -> None:
        about = new or old
        if about is None:
            return
        if feed.key.group_resource in (BINDINGS, DEFINITIONS) and _lean(old) != _lean(new):
            self._workspaces.retype(about.cluster)
        mailbox = self._mailboxes.name(about.cluster)
        if mailbox is not None:
            self._copy_changed(mailbox, feed, old, new)
        if not feed.key.presence and self._relations.in_cluster(about.cluster):
            self._source_changed(feed, about, old, new)

    def _copy_changed(
        self, mailbox: Mailbox, feed: Feed, old: Record | None, new: Record | None
    ) -> None:
        if old is not None and new is not None and _same(old, new):
            return
        about = new or old
        if about is not None and not feed.key.presence and not about.system:
            # What is no copy matters only where something of its name may be wanted.
            copy = about.projected or (old is not None and old.projected)
            if copy or self._relations.contributors(mailbox):
                self._marks.mark(mailbox, [feed.item(about)])
        if new is None and old is not None:
            if not old.namespace and self._consent.governs(mailbox):
                # The syncer is told of what is held for as long as it is there.
                self._marks.mark(mailbox, [CONFIG])
            if old.namespace:
                # Its namespace may have been waiting for this one to go.
                self._marks.mark(mailbox, [namespace_ref(old.namespace)])
            elif feed.key.group_resource == NAMESPACES:
                self._mark_room(mailbox, old.name)

    def _mark_room(self, mailbox: Mailbox, namespace: str) -> None:
        """Mark what belongs into a namespace that has gone from a mailbox and may come anew."""
        for placement in self._relations.placements_at(mailbox):
            if namespace in placement.namespaces:
                self._mark_namespace(placement, namespace, [mailbox])

    def _source_changed(
        self, feed: Feed, about: Record, old: Record | None, new: Record | None
    ) -> None:
        cluster, item = about.cluster, feed.item(about)
        if self._workspaces.feed(cluster, item.group_resource) is not feed:
            # The same objects at another version, or another type of the same name.
            self._mark_item(cluster, item)
        elif item.namespace:
            self._mark_item(cluster, item)
            if _is_source(old) != _is_source(new):
                self._mark_definition(feed, cluster, item)
        else:
            self._cluster_scoped_changed(feed, cluster, item, new)

    def _mark_definition(self, feed: Feed, cluster: str, item: ObjectRef) -> None:
        """Have what defines a type looked at when its first object comes or its last goes."""
        served = self._workspaces.served(cluster, item.group_resource)
        if served is None or served.definition is None:
            return
        sources = sum(record.is_source for record in feed.within(cluster, item.namespace).values())
        if sources <= 1:
            choosing = self._relations.choosing(cluster, item.namespace)
            self._mark_defining(served.definition, self._relations.mailboxes_of(choosing))

    def _mark_defining(self, definition: ObjectRef, mailboxes: Iterable[Mailbox]) -> None:
        for mailbox in mailboxes:
            rivals = self._resolver.rivals(mailbox) if definition.group_resource == BINDINGS else ()
            self._marks.mark(mailbox, {definition, CONFIG, *rivals})

    def _cluster_scoped_changed(
        self, feed: Feed, cluster: str, item: ObjectRef, new: Record | None
    ) -> None:
        affected = self._relations.named_changed(cluster, item, new)
        if item.group_resource == NAMESPACES:
            chosen = self._relations.namespace_changed(cluster, item.name, new)
            for name in sorted(chosen):
                placement = self._relations.get(name)
                if placement is not None:
                    self._mark_namespace(placement, item.name, placement.where)
            affected = affected | chosen
        for mailbox in self._relations.mailboxes_of(affected):
            self._marks.mark(mailbox, [item, CONFIG])
        if item.group_resource in (BINDINGS, DEFINITIONS):
            everybody = self._relations.in_cluster(cluster)
            self._mark_defining(item, self._relations.mailboxes_of(everybody))
        else:
            self._mark_item(cluster, item)
        served = self._workspaces.served(cluster, item.group_resource)
        if affected and served is not None and served.definition is not None:
            self._mark_defining(served.definition, self._relations.mailboxes_of(affected))

    def _mark_namespace(
        self, placement: Placement, namespace: str, mailboxes: Iterable[Mailbox]
    ) -> None:
        """Mark everything of a namespace that a placement chooses, or has ceased to choose."""
        cluster = placement.name.cluster
        items = {namespace_ref(namespace), CONFIG}
        definitions: set[ObjectRef] = set()
        for served, feed in self._workspaces.travelling(cluster):
            records = feed.within(cluster, namespace).values() if served.namespaced else ()
            items.update(map(feed.item, records))
            if records and served.definition is not None:
                definitions.add(served.definition)
        for mailbox in mailboxes:
            rivals = self._resolver.rivals(mailbox) if definitions else ()
            self._marks.mark(mailbox, {*items, *definitions, *rivals})

    def _mark_item(self, cluster: str, item: ObjectRef) -> None:
        """Mark one workspace's object wherever it goes."""
        if item.namespace:
            names = self._relations.choosing(cluster, item.namespace)
        elif item.group_resource == NAMESPACES:
            names = self._relations.choosing(cluster, item.name)
        else:
            names = self._relations.naming(cluster, item)
        items = [item] if item.namespace else [item, CONFIG]
        for mailbox in self._relations.mailboxes_of(names):
            self._marks.mark(mailbox, items)

    def config_changed(self, old: Object | None, new: Object | None) -> None:
        about = new or old
        if about is None or (old is not None and new is not None and old["spec"] == new["spec"]):
            return
        mailbox = self._mailboxes.name(cluster_of(about))
        if mailbox is not None:
            self._marks.mark(mailbox, [CONFIG])


def slice_owner(piece: Object) -> Iterable[ObjectRef]:
    """Index slices by the placement they belong to."""
    return (_owner(piece),)


def _owner(piece: Object) -> ObjectRef:
    return edge_placement_ref(cluster_of(piece), placement_of_slice(piece))


def _shown(name: ObjectRef) -> str:
    return f"{name.cluster}:{name.name}"


def _says(location: Object) -> tuple[object, object]:
    metadata = location["metadata"]
    return metadata.get("labels"), metadata.get("annotations")


def _lean(record: Record | None) -> bytes | None:
    return None if record is None or record.deleting else record.lean


def _is_source(record: Record | None) -> bool:
    return record is not None and record.is_source


def _same(old: Record, new: Record) -> bool:
    """Tell whether a copy is still what it was, its status and the like aside."""
    return (old.uid, old.proof, old.projected, old.deleting) == (
        new.uid,
        new.proof,
        new.projected,
        new.deleting,
    )
