"""create, update, patch and apply.

Every write is the same loop: read what is there, work out what should be, commit on condition
that nothing changed meanwhile, and begin again if something did. A client that named a
resourceVersion gets 409 instead of a second try.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import orjson

from skerry.api.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    FieldError,
    Invalid,
    NotFound,
)
from skerry.kit.clock import Clock, rfc3339
from skerry.kit.ids import IdSource
from skerry.logic.apply import WriteTerms, track_update
from skerry.logic.resource import Object
from skerry.server.admission.operation import Admission, Operation
from skerry.server.codec import decode, encode
from skerry.server.http.message import Answer, Response
from skerry.server.rest import prepare
from skerry.server.rest.body import decode_body
from skerry.server.rest.call import Call
from skerry.server.rest.options import WriteOptions, write_options
from skerry.server.rest.parts import part_of
from skerry.server.rest.read import Reader
from skerry.server.rest.versions import Versions, from_storage, to_storage
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
        ("coordination.k8s.io", "leases"),
        ("events.k8s.io", "events"),
        (_RBAC, "clusterrolebindings"),
        (_RBAC, "clusterroles"),
        (_RBAC, "rolebindings"),
        (_RBAC, "roles"),
    }
)

Mutate = Callable[[Callable[[], Object]], Object | None]


class Stamp(Protocol):
    """A mark the server keeps on stored objects, which no client may set or own."""

    def put(self, obj: Object, cluster: str) -> None:
        """Mark *obj*, about to be stored in *cluster*."""

    def strip(self, obj: Object) -> None:
        """Take the mark off, so that it plays no part in comparing and merging."""


class NoStamp:
    """A plain server marks nothing."""

    def put(self, obj: Object, cluster: str) -> None:
        return None

    def strip(self, obj: Object) -> None:
        return None


class Written(msgspec.Struct):
    """How a write ended: the object as stored, its revision, and the HTTP status it deserves.

    ``value`` is the object's stored form, where it still is stored.
    """

    obj: Object
    revision: int
    status: int = 200
    value: bytes = b""


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
        stamp: Stamp | None = None,
        awaited: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._reader = reader
        self._admission = admission
        self._clock = clock
        self._ids = ids
        self._stamp: Stamp = stamp or NoStamp()
        # Types whose writes the rest of this server must know of before the client is answered.
        self._awaited = awaited

    # -- verbs -------------------------------------------------------------------------------

    async def create(self, call: Call) -> Answer:
        """Answer a POST to a collection."""
        request = call.request
        options = write_options(request, "CreateOptions")
        obj = decode_body(request.body, request.headers.get("content-type", ""))
        self.receive(call, obj, options, prepare.repeated_fields(request, obj, options))
        prepare.address(call, obj, creating=True)
        return self.answer(call, await self.create_object(call, obj, options), status=201)

    async def update(self, call: Call) -> Answer:
        """Answer a PUT of an object or its status."""
        request = call.request
        options = write_options(request, "UpdateOptions")
        sent = decode_body(request.body, request.headers.get("content-type", ""))
        self.receive(call, sent, options, prepare.repeated_fields(request, sent, options))
        prepare.address(call, sent, creating=False)
        wanted = sent["metadata"].get("resourceVersion") or ""
        if not wanted and call.resource.custom:
            detail = "must be specified for an update"
            raise Invalid.of(
                call.group,
                call.kind,
                call.info.name,
                [FieldError.invalid("metadata.resourceVersion", 0, detail)],
            )
        fresh = Fresh(sent)
        try:
            written = await self.change(
                call, options, lambda _: fresh.take(), resource_version=wanted
            )
        except NotFound:
            if call.info.subresource or not _may_begin_by_update(call):
                raise
            call.require("create")
            written = await self.create_object(call, fresh.take(), options)
        return self.answer(call, written)

    # -- shared by all -----------------------------------------------------------------------

    def receive(
        self, call: Call, obj: Object, options: WriteOptions, repeated: Sequence[str] = ()
    ) -> None:
        """Take in an object at the version the request speaks and bring it to the stored one."""
        prepare.recognise(call, obj)
        self._stamp.strip(obj)
        prepare.conform(call, obj, options, repeated)

    async def create_object(
        self, call: Call, obj: Object, options: WriteOptions, *, tracked: bool = False
    ) -> Written:
        """Store a new object, received and addressed already; *tracked* when its managedFields
        are set."""
        metadata = obj["metadata"]
        if metadata.get("name") or not metadata.get("generateName"):
            return await self._create_once(call, obj, options, tracked=tracked)
        tries = _GENERATED_NAME_TRIES
        fresh = Fresh(obj)
        while True:
            tries -= 1
            attempt = fresh.take()
            generated = prepare.choose_name(attempt, self._ids)
            try:
                return await self._create_once(call, attempt, options, tracked=tracked)
            except AlreadyExists:
                if not generated or tries <= 0:
                    raise

    async def _create_once(
        self, call: Call, obj: Object, options: WriteOptions, *, tracked: bool
    ) -> Written:
        resource, now = call.resource, self._clock.now()
        resource.default(obj)
        if not tracked:
            self._track(call, None, obj, options)
        prepare.begin_life(resource, obj, now, self._ids)
        fresh = Fresh(obj)
        for _ in range(_TRIES):
            operation = Operation(call, "CREATE", fresh.take(), dry_run=options.dry_run)
            await self._admission.admit(operation)
            prepare.refuse_invalid(call, operation.obj)
            _warn(call, operation.obj)
            stored = to_storage(call.resource, operation.obj)
            key = call.key(stored["metadata"]["name"])
            self._stamp.put(stored, key.cluster)
            value = encode(stored)
            try:
                revision = await self._commit(call, Write(key.path(), value, expected=0), operation)
            except base.Conflict as conflict:
                if conflict.index == 0:
                    raise AlreadyExists.of(
                        call.group, resource.info.resource, key.name
                    ) from conflict
                continue
            return Written(stored, revision, 201, value)
        raise _contended(call, obj)

    async def change(
        self,
        call: Call,
        options: WriteOptions,
        mutate: Mutate,
        *,
        resource_version: str = "",
        subresource: str = "",
        tracked: bool = False,
        trusted: bool = False,
    ) -> Written:
        """Replace the object the request names by what *mutate* makes of it.

        *mutate* may call what it is given for the live object, at the request's version and its
        own to keep; it returns the wanted one, or None when the live one is as wanted, and may be
        called several times. *tracked* tells
        that it sets managedFields itself; *trusted* that the change is the server's own, made of
        what is valid already: there is nothing to default, to validate or to warn of.
        """
        subresource = subresource or call.info.subresource
        key = call.key()
        for _ in range(_TRIES):
            entry = await self._store.get(key.path())
            if entry is None:
                raise call.not_found()
            if resource_version and resource_version != str(entry.revision):
                raise Conflict.stale(call.group, call.resource.info.resource, key.name)
            try:
                return await self._change_once(
                    call, options, mutate, entry, subresource, tracked=tracked, trusted=trusted
                )
            except base.Conflict as conflict:
                if resource_version and conflict.index == 0:
                    raise Conflict.stale(
                        call.group, call.resource.info.resource, key.name
                    ) from conflict
        raise _contended(call, {"metadata": {"name": key.name}})

    async def _change_once(
        self,
        call: Call,
        options: WriteOptions,
        mutate: Mutate,
        entry: Entry,
        subresource: str,
        *,
        tracked: bool,
        trusted: bool,
    ) -> Written:
        resource = call.resource
        new = mutate(lambda: self._live(call, entry))
        if new is None:
            unchanged = decode(entry.value, entry.revision)
            _warn(call, unchanged)
            return Written(unchanged, entry.revision, value=entry.value)
        old = self._live(call, entry)
        self._same_version(call, new, old)
        if not trusted:
            resource.default(new)
        part = part_of(resource, subresource)
        if part is not None:
            new = part.narrow(new, old)
        if not tracked:
            self._track(call, old, new, options, subresource)
        prepare.carry_over(call, new, old, part)
        operation = Operation(
            call, "UPDATE", new, old, dry_run=options.dry_run, subresource=subresource
        )
        await self._admission.admit(operation)
        new = operation.obj
        if not trusted:
            prepare.refuse_invalid(call, new, old, part)
            _warn(call, new)
        stored = to_storage(call.resource, new)
        self._stamp.put(stored, call.info.cluster)
        value = encode(stored)
        if _same(value, entry) and not operation.writes:
            return Written(decode(entry.value, entry.revision), entry.revision, value=entry.value)
        if _finished(stored):
            # The last finalizer went from an object that was waiting for it.
            revision = await self._commit(
                call, Write(entry.key, None, expected=entry.revision), operation
            )
            return Written(stored, revision or entry.revision)
        write = Write(entry.key, value, expected=entry.revision)
        revision = await self._commit(call, write, operation)
        return Written(stored, revision or entry.revision, value=value)

    def _live(self, call: Call, entry: Entry) -> Object:
        """Return a stored object as a client may change it."""
        obj = decode(entry.value, entry.revision)
        self._stamp.strip(obj)
        return from_storage(call.resource, obj)

    def _same_version(self, call: Call, new: Object, old: Object) -> None:
        """A change may name the version it was made from; then that must still be the live one."""
        wanted = (new.get("metadata") or {}).get("resourceVersion") or ""
        if wanted and wanted != old["metadata"]["resourceVersion"]:
            raise Conflict.stale(call.group, call.resource.info.resource, call.info.name)

    def _track(
        self,
        call: Call,
        old: Object | None,
        new: Object,
        options: WriteOptions,
        subresource: str = "",
    ) -> None:
        """Note which manager set which field.

        Before the server adds anything of its own: what admission and the kind fill in belongs
        to nobody, so that an apply which does not mention it leaves it alone.
        """
        managed = track_update(old, new, **self.ownership(call, options, subresource))
        if managed:
            new["metadata"]["managedFields"] = managed
        else:
            new["metadata"].pop("managedFields", None)

    def ownership(self, call: Call, options: WriteOptions, subresource: str) -> WriteTerms:
        """Return who writes, for the tracking of field managers."""
        resource, versions = call.resource, Versions(call)
        return WriteTerms(
            manager=options.field_manager,
            api_version=resource.info.api_version,
            now=rfc3339(self._clock.now()),
            schema=resource.schema,
            subresource=subresource if subresource in ("status", "scale") else "",
            has_status_subresource=resource.has_status,
            resource=str(resource.info.group_resource),
            convert=versions.converted,
            schema_at=versions.schema,
        )

    async def _commit(self, call: Call, write: Write, operation: Operation) -> int:
        """Write, unless this is a rehearsal, and return the revision (0 for a rehearsal)."""
        if operation.dry_run:
            if write.expected == 0 and await self._store.get(write.key) is not None:
                raise base.Conflict(0, write.key, 0, 1)
            return 0
        revisions = await self._store.commit([write, *operation.writes])
        if (call.group, call.resource.info.resource) in self._awaited:
            await self._dispatcher.reached(max(revisions))
        return revisions[0]

    def answer(self, call: Call, written: Written, *, status: int = 0) -> Answer:
        """Show what was written."""
        shown = self._reader.representation(call)
        if shown.splices and written.value and written.revision:
            body = shown.one(written.value, written.revision)
        else:
            if written.revision:
                written.obj["metadata"]["resourceVersion"] = str(written.revision)
            body = shown.of_object(written.obj)
        return Response(status or written.status, body, shown.content_type)


def _same(value: bytes, entry: Entry) -> bool:
    """Whether storing *value* would change nothing but the order of members."""
    if len(value) != len(entry.value):
        return False
    if value == entry.value:
        return True
    return decode(value, entry.revision) == decode(entry.value, entry.revision)


def _warn(call: Call, obj: Object) -> None:
    """Note what the client should know of an object that is valid; a second try says no more."""
    call.warnings.extend(w for w in call.resource.warnings(obj) if w not in call.warnings)


def _may_begin_by_update(call: Call) -> bool:
    """Whether a PUT of this type creates what is not there, as Kubernetes allows for a few."""
    return (call.group, call.resource.info.resource) in _CREATED_BY_UPDATE


def _finished(obj: Object) -> bool:
    """Whether nothing keeps a deleted object any longer."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))
    )


def _contended(call: Call, obj: Object) -> ApiError:
    name = obj["metadata"].get("name", "")
    return Conflict.of(
        call.group, call.resource.info.resource, name, "too many writers; please try again"
    )


class Fresh:
    """An object to be used several times, each time as if never touched.

    The first taker gets the original; copies are made only for those that follow.
    """

    def __init__(self, obj: Object) -> None:
        try:
            self._snapshot = orjson.dumps(obj)
        except (TypeError, orjson.JSONEncodeError) as error:
            raise BadRequest(f"the object provided cannot be encoded as JSON: {error}") from error
        self._original: Object | None = obj

    def take(self) -> Object:
        """Return an object that nobody else will see."""
        obj, self._original = self._original, None
        if obj is None:
            obj = orjson.loads(self._snapshot)
        return obj
