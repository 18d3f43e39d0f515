"""delete and deletecollection: grace, finalizers and propagation.

A delete either removes the object at once, or marks it and leaves the rest to whoever must act
first: the finalizers' owners, the garbage collector (``orphan``, ``foregroundDeletion``), the node
that runs the pod, or the namespace controller.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from skerry.api.errors import Conflict, NotFound
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.server.admission.definitions import CLEANUP
from skerry.server.admission.operation import Admission, Operation, Validation
from skerry.server.catalogue import CRD_GROUP
from skerry.server.codec import decode, encode
from skerry.server.conversion import completed
from skerry.server.http.message import Answer, Response
from skerry.server.preparation import prepare
from skerry.server.request.call import Call
from skerry.server.request.options import DeleteOptions, delete_options, list_options
from skerry.server.request.selection import Selection
from skerry.server.request.visibility import is_narrow, refuse_unseen
from skerry.server.response.listing import turns
from skerry.server.rest.read import Reader
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store import base
from skerry.store.base import Entry, Store, Write

# Older than the garbage collector: what they own stays unless the request says otherwise.
_ORPHANING = frozenset({("", "replicationcontrollers"), ("batch", "jobs")})
_PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning"
)
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_TRIES = 20
# A delete of these answers with the object, also when it is gone; of others with a Status then.
_SHOWN_WHEN_GONE = frozenset(
    {
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        ("", "pods"),
        ("", "podtemplates"),
        ("", "resourcequotas"),
        ("", "serviceaccounts"),
        ("", "services"),
        ("storage.k8s.io", "csidrivers"),
        ("storage.k8s.io", "csinodes"),
        ("storage.k8s.io", "storageclasses"),
        ("storage.k8s.io", "volumeattachments"),
    }
)


@dataclass(slots=True)
class Deleted:
    """How a delete ended: gone, or marked and waiting."""

    obj: Object
    revision: int
    gone: bool


class Deleter:
    """Carries out deletes."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        reader: Reader,
        admission: Admission,
        clock: Clock,
        awaited: frozenset[tuple[str, str]] = frozenset(),
        *,
        validation: Validation | None = None,
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._reader = reader
        self._admission = admission
        self._validation = validation
        self._clock = clock
        self._awaited = awaited

    async def delete(self, call: Call) -> Answer:
        """Answer a DELETE of one object."""
        deleted = await self.delete_object(call, self._options(call))
        return await completed(lambda: self._answer(call, deleted))

    async def _answer(self, call: Call, deleted: Deleted) -> Answer:
        shown = self._reader.representation(call)
        shows_object = (call.group, call.resource.info.resource) in _SHOWN_WHEN_GONE
        if not deleted.gone or shows_object:
            deleted.obj["metadata"]["resourceVersion"] = str(deleted.revision)
            return Response(body=shown.of_object(deleted.obj), content_type=shown.content_type)
        return Response(
            body=shown.body(_success(call, deleted.obj)), content_type=shown.content_type
        )

    def _options(self, call: Call) -> DeleteOptions:
        body: dict[str, Any] = {}
        if call.request.body:
            body = prepare.sent_as(call.request, prepare.DELETE_OPTIONS)
        options = delete_options(call.request, body)
        if options.propagation is None and _orphans(call) and call.group == "batch":
            call.warnings.append(_PODS_STAY)
        return options

    async def collection(self, call: Call) -> Answer:
        """Answer a DELETE of a collection: each object in it that the selectors mean."""
        listing = list_options(call.request)
        selection = Selection(call, listing)
        options = self._options(call)
        shown = self._reader.representation(call)
        items: list[tuple[bytes, int]] = []
        revision = 0
        async for page_revision, entries, _, _ in self._reader.pages(call, listing, selection):
            revision = page_revision
            for some, _ in turns(entries, selection):
                for entry in some:
                    if selection.matches(entry.value, entry.revision, key=entry.key):
                        items.append((entry.value, entry.revision))
                        with contextlib.suppress(NotFound):
                            await self.delete_entry(call, options, entry)
                await asyncio.sleep(0)
        metadata = {"resourceVersion": str(revision)}
        body = await completed(lambda: self._reader.collected(call, shown, items, metadata))
        return Response(body=body, content_type=shown.content_type)

    async def delete_object(self, call: Call, options: DeleteOptions) -> Deleted:
        """Delete, or begin to delete, the object *call* names."""
        return await self._retried(call, options, call.key().path())

    async def delete_entry(self, call: Call, options: DeleteOptions, entry: Entry) -> Deleted:
        """Delete, or begin to delete, one entry of a collection."""
        return await self._retried(call, options, entry.key)

    async def _retried(self, call: Call, options: DeleteOptions, key: str) -> Deleted:
        for _ in range(_TRIES):
            entry = await self._store.get(key)
            if entry is None:
                raise call.not_found(key.rsplit("/", 1)[-1])
            if is_narrow(call.user):
                refuse_unseen(call, entry.value)
            obj = decode(entry.value, entry.revision)
            self._check(call, options, obj)
            try:
                return await self._delete_once(call, options, entry, obj)
            except base.Conflict:
                continue
        name = key.rsplit("/", 1)[-1]
        why = "too many writers; please try again"
        raise Conflict.of(call.group, call.resource.info.resource, name, why)

    def _check(self, call: Call, options: DeleteOptions, obj: Object) -> None:
        metadata = obj["metadata"]
        for wanted, found, word in (
            (options.uid, metadata["uid"], "UID"),
            (options.resource_version, metadata["resourceVersion"], "ResourceVersion"),
        ):
            if wanted is not None and wanted != found:
                raise Conflict.of(
                    call.group,
                    call.resource.info.resource,
                    metadata["name"],
                    f"Precondition failed: {word} in precondition: {wanted}, {word} in object "
                    f"meta: {found}",
                )

    async def _delete_once(
        self, call: Call, options: DeleteOptions, entry: Entry, obj: Object
    ) -> Deleted:
        marked = self._mark(call, options, obj)
        # Marked first: what a Service holds is released with the object, not when it begins to go.
        operation = Operation(call, "DELETE", obj, obj, dry_run=options.dry_run)
        await self._admission.admit(operation)
        # An eviction was judged as one.
        if self._validation is not None and call.info.subresource != "eviction":
            await self._validation.validate(operation, lambda: decode(entry.value, entry.revision))
        obj = operation.obj
        if marked is None:
            return Deleted(obj, entry.revision, gone=False)
        value = None if marked else encode(obj)
        write = Write(entry.key, value, expected=entry.revision)
        if options.dry_run:
            return Deleted(obj, entry.revision, gone=marked)
        revisions = await self._store.commit([write, *operation.writes])
        if (call.group, call.resource.info.resource) in self._awaited:
            await self._dispatcher.acknowledge(max(revisions))
        return Deleted(obj, revisions[0], gone=marked)

    def _mark(self, call: Call, options: DeleteOptions, obj: Object) -> bool | None:
        """Change *obj* as its deletion asks.

        Return True when it can go at once, False when it must be kept, marked, and None when it
        was marked before and nothing changes.
        """
        metadata = obj["metadata"]
        before = dict(metadata)
        finalizers = _finalizers(
            metadata.get("finalizers") or [], options.propagation, orphans=_orphans(call)
        )
        if _is_definition(obj) and "deletionTimestamp" not in metadata:
            finalizers = [*(name for name in finalizers if name != CLEANUP), CLEANUP]
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        grace = self._grace(call, options, obj)
        if not finalizers and grace == 0 and not _held_by_kind(obj):
            if call.resource.grace_seconds(obj) is not None:
                # Whoever reads the answer sees that no time was left.
                self._mark_deleted(metadata, 0)
            return True
        self._mark_deleted(metadata, grace)
        if obj["kind"] == "Namespace" or _is_definition(obj):
            # They go when they are empty, which is no matter of time.
            metadata.pop("deletionGracePeriodSeconds", None)
        if obj["kind"] == "Namespace":
            obj.setdefault("status", {})["phase"] = "Terminating"
        return None if metadata == before else False

    def _grace(self, call: Call, options: DeleteOptions, obj: Object) -> int:
        wanted = options.grace_seconds
        if wanted is not None and call.resource.grace_seconds(obj) is not None:
            # The time asked for stands in for the object's own; whether any is given at all
            # (a pod no node runs gets none) remains the kind's to say.
            spec = {**(obj.get("spec") or {}), "terminationGracePeriodSeconds": wanted}
            obj = {**obj, "spec": spec}
        grace = call.resource.grace_seconds(obj)
        if grace is None:
            return 0
        already = obj["metadata"].get("deletionGracePeriodSeconds")
        if already is not None and "deletionTimestamp" in obj["metadata"]:
            # A second delete may shorten the time, never lengthen it.
            return min(int(already), grace)
        return grace

    def _mark_deleted(self, metadata: dict[str, Any], grace: int) -> None:
        began = self._clock.now()
        if "deletionTimestamp" in metadata:
            before = metadata.get("deletionGracePeriodSeconds", 0)
            if before == grace:
                return
            began = parse_rfc3339(metadata["deletionTimestamp"]) - timedelta(seconds=before)
        elif "generation" in metadata:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = rfc3339(began + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace


def _orphans(call: Call) -> bool:
    """Tell whether what an object owns stays when nobody says what is to become of it."""
    resource = call.resource
    return not resource.custom and (call.group, resource.info.resource) in _ORPHANING


def _finalizers(present: list[str], propagation: str | None, *, orphans: bool) -> list[str]:
    """Return the finalizers a delete with *propagation* leaves on an object.

    Without one, those that an earlier delete left count, and then what the kind does by itself.
    """
    if propagation is None:
        decided = ORPHAN in present or FOREGROUND in present
        return present if decided or not orphans else [*present, ORPHAN]
    kept = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    if propagation == "Orphan":
        return [*kept, ORPHAN]
    if propagation == "Foreground":
        return [*kept, FOREGROUND]
    return kept


def _is_definition(obj: Object) -> bool:
    """Tell whether *obj* is a type, which keeps a finalizer until its objects are gone."""
    group, _, _ = str(obj["apiVersion"]).partition("/")
    return obj["kind"] == "CustomResourceDefinition" and group == CRD_GROUP


def _held_by_kind(obj: Object) -> bool:
    """A namespace stays until its content is gone, which its spec's finalizers stand for."""
    return obj["kind"] == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))


def _success(call: Call, obj: Object) -> dict[str, Any]:
    details: dict[str, Any] = {
        "name": obj["metadata"]["name"],
        "group": call.group,
        "kind": call.resource.info.resource,
        "uid": obj["metadata"]["uid"],
    }
    if not call.group:
        del details["group"]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
