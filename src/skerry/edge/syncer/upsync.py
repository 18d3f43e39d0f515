"""Objects on their way up: watch what the SyncerConfig asks for at the edge, keep copies right.

Watches follow the rules and the edge's types: a rule about a type that does not exist yet is no
error, it begins to count when the type appears, at the edge or in the mailbox.
"""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.edge import MAILBOX_FIELD_MANAGER, is_report
from skerry.api.errors import ApiError, NotFound
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.downsync import NotYet
from skerry.edge.syncer.mailbox import slim
from skerry.edge.syncer.state import SyncerState
from skerry.kit.log import Logger
from skerry.logic.fleet.syncing.access import MOST_NAMESPACES
from skerry.logic.fleet.syncing.carrying import digest
from skerry.logic.fleet.syncing.downsync import Outcome
from skerry.logic.fleet.syncing.projection import OURS, our_digest
from skerry.logic.fleet.syncing.records import Raised
from skerry.logic.fleet.syncing.upsync import UpDecision, UpObserved, decide_up
from skerry.logic.machinery.edges.scope import Names
from skerry.runtime.client import DeleteOptions, Selection, WriteOptions
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory

_OPTIONS = WriteOptions(field_manager=MAILBOX_FIELD_MANAGER)
_NAMESPACES = GroupVersionResource("", "v1", "namespaces")

_Watched = tuple[GroupVersionResource, str]


class Upsync:
    """Keeps the mailbox's copies of edge-born objects."""

    def __init__(self, state: SyncerState, factory: InformerFactory) -> None:
        self._s = state
        self._factory = factory
        self._watches: dict[_Watched, Informer] = {}
        self._log = Logger("syncer-upsync")

    def adjust(self) -> None:
        """Watch exactly what the present rules and types call for."""
        wanted = set(self._wanted())
        for watched in [known for known in self._watches if known not in wanted]:
            self._factory.stop(self._watches.pop(watched))
        for watched in wanted - set(self._watches):
            self._begin(watched)
        for ref in self._s.memory.all_raised():
            self._s.up.add(ref)

    def followed(self) -> set[GroupVersionResource]:
        """Return the types that are watched at the edge."""
        return {gvr for gvr, _ in self._watches}

    def touch_all(self) -> None:
        """Look at everything again: the mailbox has other types now."""
        for gvr, _ in self._watches:
            self.touch(gvr.group_resource)

    def touch(self, kind: GroupResource) -> None:
        """Look at everything of a type again: the mailbox was read as far as that goes."""
        for (gvr, _), informer in self._watches.items():
            if gvr.group_resource == kind:
                for key in list(informer.index):
                    self._s.up.add(ObjectRef("", gvr.group, gvr.resource, key.namespace, key.name))

    def name_touched(self, ref: ObjectRef) -> None:
        """Take it that the mailbox has, or has no more, an object of this name."""
        if self._s.config.scope.brings_up(ref):
            self._s.up.add(ref)

    def forget_content(self) -> None:
        """Send everything anew: the mailbox's copies are those of another store."""
        for ref in self._s.memory.all_raised():
            record = self._s.memory.raised(ref)
            if record is not None:
                self._s.memory.set_raised(ref, Raised(record.version))
                self._s.up.add(ref)

    def unknown(self) -> list[str]:
        """Return the types the rules name that the edge, or the mailbox, does not serve."""
        s = self._s
        if not s.served_edge.known or not s.served_hub.known:
            return []
        lost = s.config.scope.unserved(s.served_edge.preferred())
        lost |= {gvr.group_resource for gvr, _ in self._watches if not s.served_hub.find(gvr)}
        return sorted(map(str, lost))

    async def reconcile(self, ref: ObjectRef) -> None:
        """Take one step for *ref*; raises ``NotYet`` when another try is due."""
        s = self._s
        record = s.memory.raised(ref)
        gvr, informer = self._watch_of(ref)
        if gvr is None and record is not None:
            gvr = GroupVersionResource(ref.group, record.version, ref.resource)
        if gvr is None:
            return
        live = None if informer is None else informer.index.get(Key("", ref.namespace, ref.name))
        placed = self._goes_down(ref, live)
        if placed is None:
            return  # looked at again when the mailbox was read
        observed = UpObserved(
            ref=ref,
            live=live,
            edge_synced=informer is not None and informer.synced.is_set(),
            covered=s.config.scope.brings_up(ref) if s.config.configured else None,
            placed=placed,
            record=record,
        )
        decision = decide_up(observed)
        if decision.step != "none" and s.served_hub.known and s.served_hub.find(gvr) is None:
            return  # told of by ``unknown``; looked at again when the mailbox has the type
        try:
            await self._act(gvr, ref, decision, record)
        except ApiError as error:
            raise NotYet(f"{ref.text}: {error.message}") from error

    def _goes_down(self, ref: ObjectRef, live: Object | None) -> bool | None:
        """Tell whether *ref* is of what goes down; None before the mailbox can tell."""
        s = self._s
        if s.memory.was_placed(ref) or (live or {}).get(OURS):
            return True
        if not s.config.scope.covers(ref):
            return False
        if not s.mailbox.synced(ref.group_resource):
            return None
        wish = s.mailbox.get(ref)
        return wish is not None and not is_report(wish)

    # What is watched.

    def _wanted(self) -> Iterator[_Watched]:
        scope, served = self._s.config.scope, self._s.served_edge.preferred()
        for kind in scope.upsync_types(served):
            info = served[kind]
            if "watch" not in info.verbs:
                continue
            for namespace in _places(info.namespaced, scope.upsync_namespaces(kind)):
                yield info.gvr, namespace

    def _begin(self, watched: _Watched) -> None:
        gvr, namespace = watched
        informer = self._factory.informer(
            gvr, Selection(namespace=namespace), transform=_kept, packed=True
        )
        kind = gvr.group_resource

        def handler(old: Object | None, new: Object | None) -> None:
            ref = ObjectRef.local(kind, new or old or {})
            if self._s.config.scope.brings_up(ref) or self._s.memory.was_raised(ref):
                self._s.up.add_after(ref, self._s.settings.return_seconds)

        informer.add_handler(handler)
        self._watches[watched] = informer

    def _watch_of(self, ref: ObjectRef) -> tuple[GroupVersionResource | None, Informer | None]:
        info = self._s.served_edge.preferred().get(GroupResource(ref.group, ref.resource))
        if info is None:
            return None, None
        for namespace in dict.fromkeys((ref.namespace, "")):
            informer = self._watches.get((info.gvr, namespace))
            if informer is not None:
                return info.gvr, informer
        return info.gvr, None

    # What is written.

    async def _act(
        self, gvr: GroupVersionResource, ref: ObjectRef, decision: UpDecision, record: Raised | None
    ) -> None:
        s = self._s
        if decision.step == "raise" and decision.content is not None:
            await self._raise(gvr, ref, decision, record)
        elif decision.step == "report" and record is not None:
            await self._report(gvr, ref, decision.status)
            s.memory.set_raised(ref, _with_status(record, decision.status))
        elif decision.step == "remove" and record is not None:
            await self._remove(gvr, ref, record)
        elif decision.step == "forget":
            s.memory.set_raised(ref, None)
        if decision.step != "none":
            await s.memory.journal.flush()

    async def _raise(
        self, gvr: GroupVersionResource, ref: ObjectRef, decision: UpDecision, record: Raised | None
    ) -> None:
        s = self._s
        if (record is None or not record.mailbox_uid) and await self._is_taken(gvr, ref):
            message = "the mailbox has another object of this name"
            s.outcomes.set(ref, Outcome("Failed", "MailboxNotOurs", message))
            return
        answer = await self._applied(gvr, ref, decision.content or {})
        raised = Raised(gvr.version, answer["metadata"]["uid"], digest(decision.content))
        s.memory.set_raised(ref, raised)
        s.outcomes.forget(ref)
        if decision.status:
            await self._report(gvr, ref, decision.status)
            s.memory.set_raised(ref, _with_status(raised, decision.status))

    async def _is_taken(self, gvr: GroupVersionResource, ref: ObjectRef) -> bool:
        try:
            return not is_report(await self._s.hub.get(gvr, ref.name, ref.namespace))
        except NotFound:
            return False

    async def _applied(self, gvr: GroupVersionResource, ref: ObjectRef, content: Object) -> Object:
        hub = self._s.hub
        try:
            return await hub.patch(
                gvr, ref.name, content, ref.namespace, kind="apply", force=True, options=_OPTIONS
            )
        except NotFound:
            if not ref.namespace:
                raise
        place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ref.namespace}}
        await hub.patch(
            _NAMESPACES, ref.namespace, place, kind="apply", force=True, options=_OPTIONS
        )
        return await hub.patch(
            gvr, ref.name, content, ref.namespace, kind="apply", force=True, options=_OPTIONS
        )

    async def _report(self, gvr: GroupVersionResource, ref: ObjectRef, status: object) -> None:
        info = self._s.served_hub.find(gvr)
        parts = info is not None and any(sub.name == "status" for sub in info.subresources)
        patch = [{"op": "add", "path": "/status", "value": status}]
        await self._s.hub.patch(
            gvr,
            ref.name,
            patch,
            ref.namespace,
            kind="json",
            subresource="status" if parts else "",
            quiet=True,
            options=_OPTIONS,
        )

    async def _remove(self, gvr: GroupVersionResource, ref: ObjectRef, record: Raised) -> None:
        s = self._s
        if record.mailbox_uid:
            options = DeleteOptions(uid=record.mailbox_uid)
            try:
                await s.hub.delete(gvr, ref.name, ref.namespace, options)
            except NotFound:
                pass  # as good
            except ApiError as error:
                if error.code != 409:  # another object bears the name now: not ours to remove
                    raise
        s.memory.set_raised(ref, None)
        s.outcomes.forget(ref)


def _kept(obj: Object) -> Object:
    """Return an edge object with a sign where it was us who made it."""
    ours = our_digest(obj)
    return {**slim(obj), OURS: ours} if ours else slim(obj)


def _places(namespaced: bool, namespaces: Names) -> list[str]:
    """Return where to watch; the empty name is everywhere."""
    if not namespaced or namespaces is None or len(namespaces) > MOST_NAMESPACES:
        return [""]
    return sorted(namespaces)


def _with_status(record: Raised, status: object) -> Raised:
    return Raised(record.version, record.mailbox_uid, record.content, digest(status))
