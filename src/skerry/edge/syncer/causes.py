"""Why what we placed is not well: pods and Events of the edge, watched only while something is not.

What is well costs nothing: no watch, no memory, no request. With the first object of a namespace
whose state is not well (a rollout under way is not, yet) its pods, ReplicaSets and Events of type
Warning are watched, in the little form ``logic.fleet.syncing.cause`` reads; some time after all is
well again they no longer are. The last line of a container that failed is read when it is the
worst there is, one line, once per run of the container, and seldom.

What the edge does not let us read is left out, with the missing rule named once in our log: then
the status alone says how things are, as it does of kinds without pods.

The status write-back is the one that asks, object by object (``of``). An answer is made of what is
here already and waits for nothing. What is missing is begun instead, a watch or the reading of a
line; when it is there ``changed`` has the object asked about again. So a Deployment whose pods
crash is asked about four times as a rule:

    its status turns bad      None: leave the mark alone; the watches of its namespace begin
    they have been read       "CrashLoopBackOff: exit code 1"; the last line is asked for
    the line has been read    "CrashLoopBackOff: exit code 1: no such database"
    its status is good again  "": the mark goes; half a minute later the watches end

Who belongs to whom goes by UID, because names come again: Events and pods are about UIDs, a pod's
controlling owner is what was placed or a ReplicaSet, and the ReplicaSet's is the Deployment
(``_parents``). An object that was deleted and made anew is followed anew, and what is still being
read for the old one is dropped.

All of this is of one session and in memory only; the mark on the copy is the only trace it leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from skerry.api.edge import CAUSE
from skerry.api.errors import ApiError, Forbidden
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.kit.log import Logger
from skerry.kit.signal import Signal
from skerry.logic.fleet.summary.health import conditions_of, health
from skerry.logic.fleet.syncing.access import MAX_NAMESPACES, missing_rule
from skerry.logic.fleet.syncing.cause import (
    MAX_LINE_BYTES,
    WITH_CAUSES,
    LogLine,
    Seen,
    find,
    inert,
    is_fine,
    is_lost,
    last_line,
    lean_event,
    lean_owned,
    lean_pod,
)
from skerry.runtime.client import Client, Selection
from skerry.runtime.informer import Informer, InformerFactory, Transform
from skerry.runtime.transport import TransportError

PODS: Final = GroupVersionResource("", "v1", "pods")
EVENTS: Final = GroupVersionResource("", "v1", "events")
REPLICA_SETS: Final = GroupVersionResource("apps", "v1", "replicasets")
_WATCHED = (PODS, EVENTS, REPLICA_SETS)

# A namespace is watched for so long after all in it is well: rollouts follow one another.
_LINGER_SECONDS = 30.0
# What the edge refused is asked for again after so long, should it be needed then.
_DENIED_SECONDS = 60.0
# A hub that refused causes may be upgraded some day.
_UNWELCOME_SECONDS = 600.0
# Between two reads of logs for one object, and how many are under way at once.
_LOG_SECONDS = 10.0
_READERS = 2
# Pods that are looked at for one object; the worst of a thousand alike is among the first.
_MAX_PODS = 100

_log = Logger("syncer-causes")


@dataclass(slots=True)
class _Place:
    """The watches of one namespace; of the whole edge where that is empty.

    It lives from the first object that needs it until some time after the last. ``refs`` are the
    objects that need it now.
    """

    namespace: str
    # None: the edge does not let us, or not yet.
    pods: Informer | None = None
    sets: Informer | None = None
    events: Informer | None = None
    refs: set[ObjectRef] = field(default_factory=set)
    begun: bool = False
    # Whether somebody waits to end the watches.
    ending: bool = False

    def informers(self) -> list[Informer]:
        """Return the watches there are."""
        return [part for part in (self.pods, self.sets, self.events) if part is not None]

    def synced(self) -> bool:
        """Tell whether all that may be read has been.

        What the edge refuses is not waited for: with nothing allowed this is soon true, and the
        cause is what the status says alone.
        """
        return self.begun and all(part.synced.is_set() for part in self.informers())


@dataclass(slots=True)
class _Followed:
    """One object that is not well, and what was read of its containers' logs."""

    uid: str
    place: _Place
    lines: dict[LogLine, str] = field(default_factory=dict)
    reading: bool = False
    read_at: float = -_LOG_SECONDS


class Causes:
    """Tells why an object is not well; ``changed`` is sent when that may be another reason."""

    def __init__(self, edge: Client, factory: InformerFactory) -> None:
        self.changed = Signal[[ObjectRef]]()
        # Sent when more or fewer objects are not well.
        self.counted = Signal[[]]()
        self._edge = edge
        self._factory = factory
        self._followed: dict[ObjectRef, _Followed] = {}
        self._by_uid: dict[str, ObjectRef] = {}
        self._places: dict[str, _Place] = {}
        # Parents of ReplicaSets, by UID.
        self._parents: dict[str, str] = {}
        # When logs of a namespace were last forbidden, when the hub last refused a cause (None:
        # never), and which missing rules our log has named already.
        self._denied: dict[str, float] = {}
        self._refused_at: float | None = None
        self._said: set[str] = set()
        self._tasks: asyncio.TaskGroup | None = None
        self._readers = asyncio.Semaphore(_READERS)

    async def run(self) -> None:
        """Read what has to be asked for, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for place in self._places.values():
                    tasks.create_task(self._begin(place))
                await asyncio.Event().wait()
        finally:
            self._tasks = None

    def of(self, ref: ObjectRef, copy: Object, live: Object | None) -> str | None:
        """Return why *ref* is not well, as its mark is to say it; None leaves the mark alone.

        *copy* is the mailbox's object, *live* the row of ``present`` if it is ours. Empty: it is
        well, or nothing at the edge tells a cause; a mark that is there goes. None: the cause is
        not known yet, or the hub does not take any.
        """
        if self.unwelcome:
            return None
        if ref.group_resource not in WITH_CAUSES:
            return inert(live)
        if live is None or not _is_unwell(ref, copy, live):
            self.forget(ref)
            return ""
        followed = self._follow(ref, live)
        if not followed.place.synced():
            return None
        reported = (copy["metadata"].get("annotations") or {}).get(CAUSE, "")
        finding = find(self._seen(ref, followed, live, reported))
        if finding.ask is not None:
            self._ask(ref, followed, finding.ask)
        return "" if finding.cause is None else finding.cause.text

    @property
    def unwell(self) -> int:
        """How many objects are not well."""
        return len(self._followed)

    @property
    def unwelcome(self) -> bool:
        """Whether the hub has refused a cause of late."""
        since = self._refused_at
        return since is not None and self._edge.clock.monotonic() - since < _UNWELCOME_SECONDS

    def refused(self, why: str) -> None:
        """Take it that the hub does not take causes, being of an earlier version."""
        self._refused_at = self._edge.clock.monotonic()
        _log.warning("causes are not reported: the hub does not take them", error=why)

    def forget(self, ref: ObjectRef) -> None:
        """Take it that *ref* is well, or gone; watches that nobody else needs end later."""
        followed = self._followed.pop(ref, None)
        if followed is None:
            return
        self._by_uid.pop(followed.uid, None)
        self.counted.send()
        place = followed.place
        place.refs.discard(ref)
        if not place.refs and not place.ending and self._tasks is not None:
            place.ending = True
            self._tasks.create_task(self._end_later(place))

    # What is known.

    def _seen(self, ref: ObjectRef, followed: _Followed, live: Object, reported: str) -> Seen:
        """Gather what the watches show around one object, by indexes: no list is passed over.

        A Deployment's pods and Events are also those of its ReplicaSets, old ones included. A Pod
        that was placed by itself is its own pod, read from the row that the write-back has.
        """
        place, creators = followed.place, [followed.uid]
        if place.sets is not None and ref.resource == "deployments":
            owned = place.sets.index.by("owner", followed.uid)
            creators += [each["metadata"]["uid"] for each in owned]
        if ref.group_resource == PODS.group_resource:
            pods = [lean_pod(live)]
        else:
            pods = _of_owners(place.pods, creators)
        about = [*creators, *(pod["metadata"]["uid"] for pod in pods)]
        warnings: dict[str, list[Object]] = {}
        if place.events is not None:
            warnings = {uid: place.events.index.by("about", uid) for uid in about}
        return Seen(pods, warnings, creators, followed.lines, _verdict(ref, live), reported)

    # Watching.

    def _follow(self, ref: ObjectRef, live: Object) -> _Followed:
        """Return what is known of an object that is not well; one of another UID begins anew."""
        uid = str(live["metadata"].get("uid", ""))
        followed = self._followed.get(ref)
        if followed is not None and followed.uid == uid:
            return followed
        self.forget(ref)
        place = self._place(ref.namespace)
        place.refs.add(ref)
        self._by_uid[uid] = ref
        followed = self._followed[ref] = _Followed(uid, place)
        self.counted.send()
        return followed

    def _place(self, namespace: str) -> _Place:
        """Return the watches that cover *namespace*, begun if need be.

        Beyond so many namespaces one watch of the whole edge is begun and covers all further ones;
        those that have watches of their own keep them until they need none.
        """
        found = self._places.get(namespace) or self._places.get("")
        if found is None:
            if len(self._places) >= MAX_NAMESPACES:
                namespace = ""
            found = self._places[namespace] = _Place(namespace)
            if self._tasks is not None:
                self._tasks.create_task(self._begin(found))
        return found

    async def _begin(self, place: _Place) -> None:
        """Begin the watches of a place; what is refused is tried again while it is needed."""
        while True:
            await self._try(place)
            place.begun = True
            for informer in place.informers():
                await informer.wait_synced()
            for ref in list(place.refs):
                self.changed.send(ref)
            if len(place.informers()) == len(_WATCHED):
                return
            await self._edge.clock.sleep(_DENIED_SECONDS)
            if self._places.get(place.namespace) is not place:
                return

    async def _try(self, place: _Place) -> None:
        where = place.namespace
        if place.pods is None:
            place.pods = await self._watch(PODS, Selection(where), lean_pod)
            if place.pods is not None:
                place.pods.index.add_index("owner", _troubled)
                place.pods.index.add_index("lost", _lost)
                place.pods.index.add_index("uid", _uid)
                place.pods.add_handler(self._pod_changed)
        if place.sets is None:
            selection = Selection(where, metadata_only=True)
            place.sets = await self._watch(REPLICA_SETS, selection, lean_owned)
            if place.sets is not None:
                place.sets.index.add_index("owner", _owner)
                place.sets.add_handler(self._set_changed)
        if place.events is None:
            selection = Selection(where, fields="type=Warning")
            place.events = await self._watch(EVENTS, selection, lean_event)
            if place.events is not None:
                place.events.index.add_index("about", _about)
                place.events.add_handler(self._warned)

    async def _watch(
        self, gvr: GroupVersionResource, selection: Selection, transform: Transform
    ) -> Informer | None:
        """Begin a watch; None where the edge refuses, which is said once."""
        kind, namespace = gvr.group_resource, selection.namespace
        try:
            await self._edge.list_page(gvr, selection, limit=1)
        except Forbidden:
            self._deny("watch", kind, namespace)
            return None
        except (ApiError, TransportError) as error:
            # The informer will find its way, as any does.
            _log.debug("not read yet", kind=str(kind), error=error)
        return self._factory.informer(gvr, selection, transform=transform, packed=True)

    async def _end_later(self, place: _Place) -> None:
        """End the watches of a place unless somebody needs them again by then.

        ``_parents`` is cleared with the last place only. What is left over until then misleads
        nobody, since UIDs are never given again.
        """
        await self._edge.clock.sleep(_LINGER_SECONDS)
        place.ending = False
        if place.refs or self._places.get(place.namespace) is not place:
            return
        del self._places[place.namespace]
        for informer in place.informers():
            self._factory.stop(informer)
        if not self._places:
            self._parents.clear()

    # Handlers.

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        # A pod that was fine and is fine is no news, and that is what nearly every change is.
        if any(pod is not None and not is_fine(pod) for pod in (old, new)):
            self._touch(_owner(new or old or {}))

    def _set_changed(self, old: Object | None, new: Object | None) -> None:
        row = new or old or {}
        owner = _owner(row)
        uid = row["metadata"]["uid"]
        if new is None or not owner:
            self._parents.pop(uid, None)
        else:
            self._parents[uid] = owner[0]
        self._touch(owner)

    def _warned(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            return  # Events end after an hour, which says nothing about what they were about
        about = str(new["about"])
        place = self._places.get(new["metadata"].get("namespace", "")) or self._places.get("")
        pod = None if place is None or place.pods is None else place.pods.index.first("uid", about)
        self._touch((about,) if pod is None else (about, *_owner(pod)))

    def _touch(self, uids: Iterable[str]) -> None:
        """Have the objects looked at again that these UIDs are, or belong to."""
        for uid in uids:
            ref = self._by_uid.get(uid) or self._by_uid.get(self._parents.get(uid, ""))
            if ref is not None:
                self.changed.send(ref)

    # Logs.

    def _ask(self, ref: ObjectRef, followed: _Followed, line: LogLine) -> None:
        """Have a line read, unless one is being read for this object already.

        An empty line is an answer too: what cannot be read is not asked for again for this run.
        """
        if followed.reading or self._tasks is None:
            return
        if self._is_denied(line.namespace):
            followed.lines = {line: ""}
            return
        followed.reading = True
        self._tasks.create_task(self._read(ref, followed, line))

    async def _read(self, ref: ObjectRef, followed: _Followed, line: LogLine) -> None:
        clock = self._edge.clock
        await clock.sleep(max(0.0, followed.read_at + _LOG_SECONDS - clock.monotonic()))
        async with self._readers:
            text = await self._last_line(line)
        followed.read_at = clock.monotonic()
        # One line is kept, and every run has another: the newest is the one that is asked for.
        followed.lines = {line: text}
        followed.reading = False
        if self._followed.get(ref) is followed:
            self.changed.send(ref)

    async def _last_line(self, line: LogLine) -> str:
        """Return the last line that a run of a container wrote; empty where that is not to be had.

        Asked past ``Client``, which reads objects: a log is plain text.
        """
        path = self._edge.path(PODS, line.namespace, line.pod, "log")
        query = {
            "container": line.container,
            "tailLines": "1",
            "limitBytes": str(MAX_LINE_BYTES),
            "previous": str(line.previous).lower(),
        }
        headers = {"accept": "*/*", "user-agent": self._edge.user_agent}
        try:
            answer = await self._edge.transport.request("GET", path, urlencode(query), headers)
        except TransportError:
            return ""
        if answer.status == 403:
            self._denied[line.namespace] = self._edge.clock.monotonic()
            self._deny("get", _LOGS, line.namespace)
        if answer.status != 200:
            return ""
        return last_line(answer.body[:MAX_LINE_BYTES].decode(errors="replace"))

    # What we may not.

    def _is_denied(self, namespace: str) -> bool:
        since = self._denied.get(namespace)
        return since is not None and self._edge.clock.monotonic() - since < _DENIED_SECONDS

    def _deny(self, verb: str, kind: GroupResource, namespace: str) -> None:
        rule = missing_rule(verb, kind, namespace)
        if rule not in self._said:
            self._said.add(rule)
            _log.warning(
                "causes are not reported: the status alone says how things are", error=rule
            )


_LOGS = GroupResource("", "pods/log")


def _is_unwell(ref: ObjectRef, copy: Object, live: Object) -> bool:
    """Tell whether the edge's state is such that its pods are to be asked.

    The spec is the copy's, because rows of ``present`` have none. No status yet is no trouble yet.
    A Job that has pods counts as healthy, whether or not these get on, so its numbers decide.
    """
    status = live.get("status")
    if not isinstance(status, Mapping) or not status:
        return False
    kind = str(copy.get("kind", ""))
    found = health(ref.group, kind, {"spec": copy.get("spec"), "status": status})
    if found.status != "True":
        return True
    active, ready = status.get("active", 0), status.get("ready", 0)
    return kind == "Job" and found.reason == "Running" and bool(active != ready)


def _verdict(ref: ObjectRef, live: Object) -> str:
    """Return a Job's own word for its failure, which its pods explain."""
    if ref.resource != "jobs":
        return ""
    for condition in conditions_of(live["status"]):
        if condition["type"] == "Failed" and condition.get("status") == "True":
            return str(condition.get("reason") or "Failed")
    return ""


def _of_owners(pods: Informer | None, owners: Sequence[str]) -> list[Object]:
    """Return the first pods of these owners that have something to tell.

    Those that were evicted or lost, of which clusters keep thousands, only where there is no other.
    """
    if pods is None:
        return []
    for name in ("owner", "lost"):
        keys = [key for owner in owners for key in pods.index.keys_by(name, owner)]
        found = [pods.index.get(key) for key in keys[:_MAX_PODS]]
        if found:
            return [pod for pod in found if pod is not None]
    return []


def _owner(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the UID of the controlling owner, if there is one."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return (str(reference.get("uid", "")),)
    return ()


def _troubled(pod: Object) -> Iterable[Hashable]:
    """Index a pod under its owner while it has something to tell."""
    return () if is_fine(pod) or is_lost(pod) else _owner(pod)


def _lost(pod: Object) -> Iterable[Hashable]:
    """Index a pod under its owner once it has failed as a whole."""
    return _owner(pod) if is_lost(pod) else ()


def _uid(obj: Object) -> Iterable[Hashable]:
    return (str(obj["metadata"].get("uid", "")),)


def _about(event: Object) -> Iterable[Hashable]:
    return (str(event["about"]),)
