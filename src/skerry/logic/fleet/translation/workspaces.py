"""What the workspaces concerned serve, and which watch shows the objects of a kind in each.

A workspace is followed while a placement is in it or while it is a mailbox. What it serves is
derived anew whenever a binding, definition or schema of it changes, at that very event; a thousand
workspaces that bind alike share one result. Nothing here starts a watch: ``retype`` returns which
ones are to be followed and which to be stopped, and a row that depends on a watch nobody follows
is pending on it like on any other that has not been read (see ``scopes``).

What a workspace serves comes from four places, in this order: what the hub serves everywhere, what
the workspace binds, the schemas that its bindings refer to, and what it defines for itself. The
schemas of all exports are one input: a binding whose schema is not there brings a kind that is
*unknown*, and while there is one, nothing that depends on the types of this workspace is decided.

A kind is watched in one of three ways. What travels is watched with its content; everywhere at once
if it is the hub's or bound, since the identity of its export distinguishes a bound kind; in the
workspace alone if it is its own. What does not travel but is namespaced is watched for presence: a
Namespace in a mailbox is not removed while somebody else's object is in it. All else is not
watched.

Sharing is by what bindings and definitions say, as bytes and sorted: ten thousand mailboxes with
the same five bindings are one ``WorkspaceTypes``, and a retype of each is a look into a dictionary.
A workspace with kinds of its own shares the types but not the watches, whose keys name it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from skerry.api.edge import Mailbox
from skerry.api.kcp.resources import API_BINDINGS
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.sources import EVERYWHERE, Record, Records, WatchKey, wide
from skerry.logic.fleet.translation.types import ServedType, WorkspaceTypes, workspace_types

BINDING_WATCH = wide(*API_BINDINGS)
DEFINITION_WATCH = wide("apiextensions.k8s.io", "v1", "customresourcedefinitions")
NAMESPACE_WATCH = wide("", "v1", "namespaces")
# These are followed from the beginning: what of them is selected depends on all the rest.
BASIC_WATCHES = (BINDING_WATCH, DEFINITION_WATCH, NAMESPACE_WATCH)
# Most of a cluster's traffic, nobody's workload, and gone within the hour.
_IGNORED = frozenset((GroupResource("", "events"), GroupResource("events.k8s.io", "events")))

# What can be read to the end: the key of a watch, or one of those below. Rows wait for them.
Scope = tuple[Any, ...]
# Everything that LocationGrants depend on.
GRANTS: Scope = ("grants",)
PATH = "path"
SELECTION = "selection"
SERVING = "serving"
REVISION = "revision"
CONTENT = "content"


def types_scope(cluster: ClusterName) -> Scope:
    """Return the scope of what a workspace serves."""
    return ("types", cluster)


def selection_scope(placement: ObjectRef) -> Scope:
    """Return the scope of what a placement selects: incomplete while it is malformed."""
    return (SELECTION, placement.cluster, placement.name)


def path_scope(cluster: ClusterName) -> Scope:
    """Return the scope of a workspace's path: asked for where workspaces want the same name."""
    return (PATH, cluster)


def serving_scope(cluster: ClusterName, kind: GroupResource) -> Scope:
    """Return the scope of a kind that a mailbox is about to serve.

    It is never complete: that the mailbox serves the kind touches every row of it. Where what
    defines the kind is withheld, that never comes.
    """
    return (SERVING, cluster, *kind)


def revision_scope(placement: ObjectRef, number: int) -> Scope:
    """Return the scope of a placement's revision; never complete for long."""
    return (REVISION, placement.cluster, placement.name, str(number))


def content_scope(cluster: ClusterName, item: ObjectRef, digest: str) -> Scope:
    """Return the scope of what revisions name by a digest; never complete either."""
    return (CONTENT, cluster, digest, *item[1:])


class Retyped(NamedTuple):
    """What is different about a workspace: the kinds, and watches to be followed or stopped."""

    kinds: frozenset[GroupResource]
    follow: tuple[WatchKey, ...] = ()
    stop: tuple[WatchKey, ...] = ()


@dataclass(slots=True)
class _Watches:
    """The watches that show what a workspace serves, as they were found when asked for.

    They follow from the types alone, and where a type is a workspace's own, from which one it is.
    """

    by_kind: dict[tuple[GroupResource, str], WatchKey | None] = field(default_factory=dict)
    # Every kind that is followed, at the version it is read at.
    followed: tuple[tuple[ServedType, WatchKey], ...] | None = None
    travelling: tuple[tuple[ServedType, WatchKey], ...] | None = None


class _Served(NamedTuple):
    """What a workspace serves: one for all that serve the same, and nothing of their own."""

    types: WorkspaceTypes
    watches: _Watches


_NOTHING = _Served(WorkspaceTypes({}), _Watches())


class Workspaces:
    """What the followed workspaces serve, and the records of everything in them."""

    def __init__(self, schemas: Callable[[], Mapping[tuple[str, str], Object] | None]) -> None:
        """*schemas* returns every schema by cluster and name; None until all are known."""
        self._schemas = schemas
        self._common: tuple[ServedType, ...] | None = None
        # Whether copies are without effect on this hub; unknown ones might act on it.
        self.copies_are_inert = False
        self._followed: Counter[ClusterName] = Counter()
        self._served: dict[ClusterName, _Served] = {}
        self._records: dict[WatchKey, Records] = {key: Records(key) for key in BASIC_WATCHES}
        self.bindings, self.definitions, self.namespaces = self._records.values()
        self._shared: dict[tuple[bytes, ...], _Served] = {}
        self._paths: dict[ClusterName, str] = {}

    # -- changing ----------------------------------------------------------------------------

    def learn_hub(self, common: tuple[ServedType, ...], *, copies_are_inert: bool) -> None:
        """Take what the hub serves in every workspace; until then nothing is known."""
        self._common = common
        self.copies_are_inert = copies_are_inert

    def follow(self, cluster: ClusterName) -> None:
        """Begin to follow a workspace; each call wants its own ``leave``."""
        self._followed[cluster] += 1

    def leave(self, cluster: ClusterName) -> tuple[WatchKey, ...]:
        """Follow a workspace for one reason less; returns the watches to be stopped."""
        self._followed[cluster] -= 1
        if self._followed[cluster] > 0:
            return ()
        del self._followed[cluster]
        self._paths.pop(cluster, None)
        served = self._served.pop(cluster, _NOTHING).types.served.values()
        return tuple(key for each in served if each.local for key in self._local(cluster, each))

    def learn_path(self, cluster: ClusterName, path: str) -> None:
        """Take the path of a workspace, which never changes; empty when it cannot be read."""
        if cluster in self._followed:
            self._paths[cluster] = path

    def forget_types(self) -> None:
        """Have every workspace's kinds derived from the beginning at its next ``retype``."""
        self._shared.clear()

    def retype(self, cluster: ClusterName) -> Retyped | None:
        """Derive what a workspace serves; returns what is different, None when nothing is.

        Nothing is derived from a part of what decides about it: ask ``knows_types`` before.
        """
        old, derived = self.types(cluster), self._derived(cluster)
        new = derived.types
        if old is new and cluster in self._served:
            return None
        self._served[cluster] = _Served(new, _Watches()) if new.local else derived
        changed = frozenset(
            each
            for each in old.served.keys() | new.served.keys() | old.unknown | new.unknown
            if old.served.get(each) != new.served.get(each)
            or (each in old.unknown) != (each in new.unknown)
        )
        return Retyped(changed, *self._watches(cluster, old, new, changed)) if changed else None

    def _derived(self, cluster: ClusterName) -> _Served:
        bindings, definitions = _leans(self.bindings, cluster), _leans(self.definitions, cluster)
        key = (*bindings, b"", *definitions)
        known = self._shared.get(key)
        if known is None:
            types = workspace_types(
                self._common or (),
                map(orjson.loads, bindings),
                self._schemas() or {},
                map(orjson.loads, definitions),
            )
            known = self._shared[key] = _Served(types, _Watches())
        return known

    def _watches(
        self,
        cluster: ClusterName,
        old: WorkspaceTypes,
        new: WorkspaceTypes,
        changed: frozenset[GroupResource],
    ) -> tuple[tuple[WatchKey, ...], tuple[WatchKey, ...]]:
        follow: list[WatchKey] = []
        stop: list[WatchKey] = []
        for kind in sorted(changed):
            before, now = old.served.get(kind), new.served.get(kind)
            if before is not None and before.local and (now is None or not now.local):
                stop += self._local(cluster, before)
            if now is not None and _is_followed(now):
                follow.append(_watch_key(cluster, now, now.versions[0]))
        return tuple(follow), tuple(stop)

    def _local(self, cluster: ClusterName, served: ServedType) -> Iterator[WatchKey]:
        """Yield the watches of a kind that one workspace defines for itself, at any version."""
        for version in served.versions:
            key = _watch_key(cluster, served, version)
            if key in self._records:
                yield key

    def watch(self, key: WatchKey) -> Records:
        """Return the records of a watch; one that is not known yet has none so far."""
        found = self._records.get(key)
        if found is None:
            found = self._records[key] = Records(key)
        return found

    def unwatch(self, key: WatchKey) -> Records | None:
        """Forget the records of a watch that has been stopped; returns them."""
        return self._records.pop(key, None)

    # -- asking ------------------------------------------------------------------------------

    @property
    def followed(self) -> list[ClusterName]:
        return list(self._followed)

    def follows(self, cluster: ClusterName) -> bool:
        return cluster in self._followed

    def path(self, cluster: ClusterName) -> str | None:
        """Return the path of a workspace; None while it has not been read."""
        return self._paths.get(cluster)

    def types(self, cluster: ClusterName) -> WorkspaceTypes:
        return self._served.get(cluster, _NOTHING).types

    def served(self, cluster: ClusterName, kind: GroupResource) -> ServedType | None:
        return self.types(cluster).served.get(kind)

    def all_records(self) -> list[Records]:
        return list(self._records.values())

    def watch_of(
        self, cluster: ClusterName, kind: GroupResource, version: str = ""
    ) -> WatchKey | None:
        """Return the watch that shows a workspace's objects of a kind, at a version it serves."""
        types, watches = self._served.get(cluster, _NOTHING)
        if kind not in types.served:
            return None
        known, key = watches.by_kind, (kind, version)
        if key not in known:
            known[key] = self._find_watch(cluster, kind, version)
        return known[key]

    def _find_watch(
        self, cluster: ClusterName, kind: GroupResource, version: str
    ) -> WatchKey | None:
        served = self.served(cluster, kind)
        if served is None or not _is_followed(served):
            return None
        if version and version not in served.versions:
            return None
        return _watch_key(cluster, served, version or served.versions[0])

    def records(
        self, cluster: ClusterName, kind: GroupResource, version: str = ""
    ) -> Records | None:
        """Return the records of a kind as a workspace serves it; None without a watch."""
        key = self.watch_of(cluster, kind, version)
        return None if key is None else self._records.get(key)

    def record(self, cluster: ClusterName, item: ObjectRef, version: str = "") -> Record | None:
        found = self.records(cluster, item.group_resource, version)
        return None if found is None else found.get(cluster, item.namespace, item.name)

    def followed_types(self, cluster: ClusterName) -> Iterator[tuple[ServedType, Records]]:
        """Yield each kind of a workspace that is followed, with its records."""
        return self._with_records(self._followed_in(cluster))

    def travelling(self, cluster: ClusterName) -> Iterator[tuple[ServedType, Records]]:
        """Yield each kind of a workspace whose objects travel, Namespaces not counted."""
        watches = self._served.get(cluster, _NOTHING).watches
        if watches.travelling is None:
            watches.travelling = tuple(
                (served, key)
                for served, key in self._followed_in(cluster)
                if served.travels and served.group_resource != NAMESPACES
            )
        return self._with_records(watches.travelling)

    def _followed_in(self, cluster: ClusterName) -> tuple[tuple[ServedType, WatchKey], ...]:
        types, watches = self._served.get(cluster, _NOTHING)
        if watches.followed is None:
            found = (
                (served, self.watch_of(cluster, kind)) for kind, served in types.served.items()
            )
            watches.followed = tuple((served, key) for served, key in found if key is not None)
        return watches.followed

    def _with_records(
        self, watches: Iterable[tuple[ServedType, WatchKey]]
    ) -> Iterator[tuple[ServedType, Records]]:
        for served, key in watches:
            found = self._records.get(key)
            if found is not None:
                yield served, found

    def candidates(self, cluster: ClusterName) -> dict[ObjectRef, Mapping[str, str]]:
        """Return what placements can select by labels: Namespaces, and what is in none."""
        everything = [found for served, found in self.travelling(cluster) if not served.namespaced]
        return {
            records.ref(record): record.labels
            for records in (self.namespaces, *everything)
            for record in records.within(cluster).values()
            if record.is_source
        }

    # -- what has been read ------------------------------------------------------------------

    @property
    def knows_hub(self) -> bool:
        """Whether the hub itself has said all it has to say about kinds."""
        return self._common is not None and self._schemas() is not None

    def knows_types(self, cluster: ClusterName) -> bool:
        """Tell whether every kind of a workspace is understood, given that all was read."""
        known = self._served.get(cluster)
        return known is not None and not known.types.unknown

    def scopes(
        self, cluster: ClusterName, kind: GroupResource, version: str = ""
    ) -> tuple[Scope, ...]:
        """Return what must have been read to know a workspace's objects of a kind."""
        key = self.watch_of(cluster, kind, version)
        basics = (types_scope(cluster), NAMESPACE_WATCH)
        return basics if key is None else (*basics, key)

    def all_scopes(self, cluster: ClusterName) -> Iterator[Scope]:
        """Yield what must have been read to know everything in a workspace."""
        yield types_scope(cluster)
        yield NAMESPACE_WATCH
        for _, key in self._followed_in(cluster):
            yield key


class Mailboxes:
    """The input table of mailboxes: which logical cluster each of them is, both ways round."""

    def __init__(self) -> None:
        self._clusters: dict[Mailbox, ClusterName] = {}
        self._mailboxes: dict[ClusterName, Mailbox] = {}

    def cluster(self, mailbox: Mailbox) -> ClusterName | None:
        """Return the cluster of a mailbox; None while it has none or is being deleted."""
        return self._clusters.get(mailbox)

    def at(self, cluster: ClusterName) -> Mailbox | None:
        """Return the mailbox a cluster is."""
        return self._mailboxes.get(cluster)

    def put(self, mailbox: Mailbox, cluster: ClusterName) -> None:
        self.remove(mailbox)
        self._clusters[mailbox] = cluster
        self._mailboxes[cluster] = mailbox

    def remove(self, mailbox: Mailbox) -> None:
        cluster = self._clusters.pop(mailbox, None)
        if cluster is not None:
            del self._mailboxes[cluster]


def _leans(records: Records, cluster: ClusterName) -> list[bytes]:
    found = records.within(cluster).values()
    return sorted(each.lean for each in found if each.lean and not each.being_deleted)


def _is_followed(served: ServedType) -> bool:
    """Tell whether a kind matters: it travels, or may be found in a mailbox's namespace."""
    if not served.versions or served.group_resource in _IGNORED:
        return False
    return served.travels or served.namespaced


def _watch_key(cluster: ClusterName, served: ServedType, version: str) -> WatchKey:
    where = cluster if served.local else EVERYWHERE
    presence = not served.travels
    return WatchKey(
        where, served.group, version, served.resource, served.identity, presence=presence
    )
