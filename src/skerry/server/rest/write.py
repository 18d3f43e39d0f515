"""create, update, patch and apply.

Every write is the same loop: read what is there, work out what should be, commit on condition
that nothing changed meanwhile, and begin again if something did. A client that named a
resourceVersion gets 409 instead of a second try.

What should be is worked out by ``preparation``, on the loop or, where there is much to work out,
in a worker process (``work``). Reading, admission and committing are always done here.
"""

from __future__ import annotations

import msgspec

from skerry.api.errors import AlreadyExists, Conflict, NotFound
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.server.admission.operation import Admission, Operation, Validation
from skerry.server.codec import decode
from skerry.server.conversion import completed
from skerry.server.http.message import Answer, Response
from skerry.server.offload.offload import Offload
from skerry.server.preparation.draft import Draft
from skerry.server.preparation.pipeline import Mutation, Preparation
from skerry.server.request.body import decode_body
from skerry.server.request.call import Call, member
from skerry.server.request.options import WriteOptions, write_options
from skerry.server.request.visibility import is_narrow, refuse_unseen
from skerry.server.rest.read import Reader
from skerry.server.rest.work import LocalWork, Work, local_work, remote_work
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store import base
from skerry.store.base import Entry, Store, Write

# A patch meets other writers; kube-apiserver gives up after five. More costs nothing here.
_TRIES = 20
_GENERATED_NAME_TRIES = 8

_RBAC = "rbac.authorization.k8s.io"
_CREATED_BY_UPDATE = frozenset(
    {
        ("", "endpoints"),
        ("", "events"),
        ("", "limitranges"),
        ("", "services"),
        ("coordination.k8s.io", "leases"),
        ("events.k8s.io", "events"),
        ("node.k8s.io", "runtimeclasses"),
        (_RBAC, "clusterrolebindings"),
        (_RBAC, "clusterroles"),
        (_RBAC, "rolebindings"),
        (_RBAC, "roles"),
    }
)


class Written(msgspec.Struct):
    """How a write ended: the stored form of the object, its revision (0 of a rehearsal that made
    none), and the HTTP status it deserves. *named* is the version that a rehearsal was given."""

    value: bytes
    revision: int
    status: int = 200
    named: str = ""

    def object(self) -> Object:
        """Return the object as it is stored."""
        obj = decode(self.value, self.revision)
        if self.named:
            obj["metadata"]["resourceVersion"] = self.named
        elif not self.revision:
            del obj["metadata"]["resourceVersion"]
        return obj


class Writer:
    """Carries out writes of single objects."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        reader: Reader,
        admission: Admission,
        clock: Clock,
        ids: IdSource,
        *,
        preparation: Preparation | None = None,
        awaited: frozenset[tuple[str, str]] = frozenset(),
        offload: Offload | None = None,
        validation: Validation | None = None,
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._reader = reader
        self._admission = admission
        self._clock = clock
        self._ids = ids
        self._preparation = preparation or Preparation()
        self._offload = offload or Offload()
        self._validation = validation
        # Types whose writes the rest of this server must know of before the client is answered.
        self._awaited = awaited

    # -- verbs -------------------------------------------------------------------------------

    async def create(self, call: Call) -> Answer:
        """Answer a POST to a collection."""
        options = write_options(call.request, "CreateOptions")
        work = self.work(call, options, "create")
        return await self.answer(call, await self.create_object(call, options, work), status=201)

    async def update(self, call: Call) -> Answer:
        """Answer a PUT of an object or its status."""
        options = write_options(call.request, "UpdateOptions")
        work = self.work(call, options, "update")
        try:
            written = await self.change(call, options, work, name="update")
        except NotFound:
            if call.info.subresource:
                raise
            self._refuse_another(call)
            if not _may_begin_by_update(call):
                raise
            call.require("create")
            written = await self.create_object(call, options, work)
        return await self.answer(call, written)

    def _refuse_another(self, call: Call) -> None:
        """Refuse to put in the place of an object that is gone what was read from it."""
        request = call.request
        media = request.headers.get("content-type", "")
        if self._offload.is_heavy(request.body, media):
            return
        uid = member(decode_body(request.body, media), "metadata", "uid")
        if uid and isinstance(uid, str):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            raise Conflict.of(call.group, call.resource.info.resource, call.info.name, why)

    # -- shared by all -----------------------------------------------------------------------

    def work(self, call: Call, options: WriteOptions, name: str) -> Work:
        """Return what computes the write that *call* asks for, its body read as *name* says."""
        request, offload = call.request, self._offload
        if offload.is_heavy(request.body, request.headers.get("content-type", "")) or (
            call.resource.compiles and offload.compiles(request.body)
        ):
            remote = remote_work(self._offload, call, options, name, self._clock, self._ids)
            if remote is not None:
                return remote
        return local_work(
            self._preparation, call, options, name, self._clock, self._ids, offload=self._offload
        )

    def own_work(self, call: Call, options: WriteOptions, mutation: Mutation) -> Work:
        """Return what computes a change of the server's own making."""
        return LocalWork(
            self._preparation,
            call,
            options,
            mutation,
            rfc3339(self._clock.now()),
            self._ids,
            offload=self._offload,
        )

    def _work_on(
        self, call: Call, options: WriteOptions, work: Work, name: str, entry: Entry
    ) -> Work:
        """Return what computes the change of *entry*: of a large object, a worker."""
        if not name or not isinstance(work, LocalWork) or not self._offload.is_heavy(entry.value):
            return work
        return remote_work(self._offload, call, options, name, self._clock, self._ids) or work

    async def create_object(self, call: Call, options: WriteOptions, work: Work) -> Written:
        """Store a new object."""
        tries = _GENERATED_NAME_TRIES
        while True:
            tries -= 1
            drafted = await work.drafted()
            try:
                return await self._create_once(call, options, work, drafted.draft)
            except AlreadyExists:
                if not drafted.generated or tries <= 0:
                    raise

    async def _create_once(
        self, call: Call, options: WriteOptions, work: Work, draft: Draft
    ) -> Written:
        name = call.info.name
        for _ in range(_TRIES):
            operation = Operation(call, "CREATE", draft.take(), dry_run=options.dry_run)
            await self._admission.admit(operation)
            name = operation.obj["metadata"].get("name", "")
            version = operation.obj["metadata"].get("resourceVersion", "")
            value = await work.finished(operation.obj, None, None, "") or b""
            await self._validate(operation, value, 0)
            write = Write(call.path(name), value, expected=0)
            try:
                revision = await self._commit(call, write, operation)
            except base.Conflict as conflict:
                if conflict.index == 0:
                    resource = call.resource.info.resource
                    raise AlreadyExists.of(call.group, resource, name) from conflict
                continue
            if options.dry_run and call.info.verb != "update":
                value = self._preparation.rehearsed(value)
            return Written(value, revision, 201, version)
        raise _contended(call, name)

    async def change(
        self,
        call: Call,
        options: WriteOptions,
        work: Work,
        *,
        name: str = "",
        subresource: str = "",
    ) -> Written:
        """Replace the object the request names by what *work* makes of it.

        *name* says how the body is read, should a worker have to do it.
        """
        subresource = subresource or call.info.subresource
        key = call.key()
        for _ in range(_TRIES):
            entry = await self._store.get(key.path())
            if entry is None:
                raise call.not_found()
            if is_narrow(call.user):
                refuse_unseen(call, entry.value)
            doing = self._work_on(call, options, work, name, entry)
            try:
                return await self._change_once(call, options, doing, entry, subresource)
            except base.Conflict as conflict:
                if doing.pinned and conflict.index == 0:
                    raise Conflict.stale(
                        call.group, call.resource.info.resource, key.name
                    ) from conflict
        raise _contended(call, key.name)

    async def _change_once(
        self, call: Call, options: WriteOptions, work: Work, entry: Entry, subresource: str
    ) -> Written:
        changed = await work.changed(entry, subresource)
        if changed is None:
            return Written(entry.value, entry.revision)
        operation = Operation(
            call,
            "UPDATE",
            changed.new,
            changed.old,
            dry_run=options.dry_run,
            subresource=subresource,
        )
        await self._admission.admit(operation)
        finished = _is_finished(operation.obj)
        value = await work.finished(operation.obj, changed.old, entry, subresource)
        await self._validate(operation, value or entry.value, entry.revision)
        if value is None:
            if not operation.writes:
                return Written(entry.value, entry.revision)
            value = entry.value
        # An object that was waiting for its last finalizer goes with it.
        write = Write(entry.key, None if finished else value, expected=entry.revision)
        revision = await self._commit(call, write, operation)
        return Written(value, revision or entry.revision)

    async def _validate(self, operation: Operation, value: bytes, revision: int) -> None:
        """Have judged what is about to be stored and is valid by itself."""
        if self._validation is None or self._validation.is_idle:
            return

        def seen() -> Object:
            # What is stored has been stamped and converted; the client's rules see neither.
            obj = self._preparation.live(operation.call, Entry("", value, revision))
            if not revision:
                del obj["metadata"]["resourceVersion"]
            return obj

        validation = self._validation
        await completed(lambda: validation.validate(operation, seen))

    async def _commit(self, call: Call, write: Write, operation: Operation) -> int:
        """Write, unless this is a rehearsal, and return the revision (0 for a rehearsal)."""
        if operation.dry_run:
            if write.expected == 0 and await self._store.get(write.key) is not None:
                raise base.Conflict(0, write.key, 0, 1)
            return 0
        commit = call.request.commit or self._store.commit
        revisions = await commit([write, *operation.writes])
        if (call.group, call.resource.info.resource) in self._awaited:
            await self._dispatcher.acknowledge(max(revisions))
        return revisions[0]

    async def answer(self, call: Call, written: Written, *, status: int = 0) -> Answer:
        """Show what was written."""
        if call.resource.webhook is None:
            return await self._answer(call, written, status)
        # The write is done and must not be begun again for what showing it needs.
        return await completed(lambda: self._answer(call, written, status))

    async def _answer(self, call: Call, written: Written, status: int) -> Answer:
        shown = self._reader.representation(call)
        if written.revision:
            body = await self._reader.shown(call, shown, written.value, written.revision)
        else:
            body = shown.of_object(written.object())
        return Response(status or written.status, body, shown.content_type)


def _may_begin_by_update(call: Call) -> bool:
    """Whether a PUT of this type creates what is not there, as Kubernetes allows for a few."""
    return (call.group, call.resource.info.resource) in _CREATED_BY_UPDATE


def _is_finished(obj: Object) -> bool:
    """Whether nothing keeps a deleted object any longer."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))
    )


def _contended(call: Call, name: str) -> Conflict:
    return Conflict.of(
        call.group, call.resource.info.resource, name, "too many writers; please try again"
    )
