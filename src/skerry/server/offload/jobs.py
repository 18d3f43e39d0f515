"""What a worker can be asked for, as pure functions of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from zlib import adler32

import orjson

from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.logic.machinery.resource import Extend, as_is
from skerry.server.catalogue import TypeSet
from skerry.server.codec import decode
from skerry.server.http.message import Request
from skerry.server.offload.checks import CHECKS
from skerry.server.offload.families import Families
from skerry.server.offload.messages import (
    Change,
    Check,
    Document,
    Done,
    Draft,
    Finish,
    Job,
    Missing,
    Refused,
    Render,
    Result,
)
from skerry.server.openapi_documents import document
from skerry.server.preparation.pipeline import Creation, Preparation
from skerry.server.preparation.prepare import TRIPPED
from skerry.server.request.call import Call
from skerry.server.response.rendering import representation
from skerry.server.user import User
from skerry.store.base import Entry

# The rules a worker applies ask for no rights; whoever asks was authorized before.
_NOBODY: Final = User("")
# The half of an Adler-32 checksum that does not depend on the order of bytes.
_SUM: Final = 0xFFFF


class Jobs:
    """Does jobs with the rules of one server."""

    def __init__(self, preparation: Preparation, extend: Extend = as_is) -> None:
        self._preparation = preparation
        self._families = Families(extend)
        self._do: Mapping[type, Callable[[Job, Call, Any], Done]] = {
            Draft: self._draft,
            Change: self._change,
            Finish: self._finish,
            Render: self._render,
            Check: self._check,
            Document: self._document,
        }

    def do(self, job: Job) -> Result:
        """Return how *job* ends; a refusal is a result too."""
        missing = self._families.missing(job.types)
        if missing:
            return Missing(missing)
        resources = [self._families.resolve(reference) for reference in job.types]
        request = Request("", "", job.query, job.headers, job.body)
        types = self._families.types(job.types[0])
        if isinstance(job.task, Document):
            types = TypeSet(resources)
        call = Call(request, job.info, _NOBODY, resources[0], types)
        try:
            done = self._do[type(job.task)](job, call, job.task)
        except ApiError as error:
            return Refused(error.code, error.status(), error.headers, call.warnings)
        done.warnings = call.warnings
        return done

    def _draft(self, job: Job, call: Call, task: Draft) -> Done:
        generated: list[str] = []

        def suffix() -> str:
            generated.append(task.suffix)
            return task.suffix

        mutation = self._preparation.mutation(task.mutation, call, job.options, task.now)
        creation = Creation(task.now, lambda: task.uid, suffix)
        obj = self._preparation.drafted(call, job.options, mutation, creation)
        owned = without_owned(obj)
        return Done(orjson.dumps(obj), owned=owned, generated=bool(generated))

    def _change(self, job: Job, call: Call, task: Change) -> Done:
        mutation = self._preparation.mutation(task.mutation, call, job.options, task.now)
        pinned = bool(mutation.resource_version)
        entry = Entry(call.key().path(), task.value, task.revision)
        changed = self._preparation.changed(
            call, job.options, mutation, entry, task.subresource, task.now
        )
        if changed is None:
            self._preparation.warn(call, decode(task.value, task.revision))
            return Done(unchanged=True, pinned=pinned)
        # First the one that is kept: both may share entries.
        owned = without_owned(changed.new)
        without_owned(changed.old)
        new, old = orjson.dumps(changed.new), orjson.dumps(changed.old)
        return Done(new, old, owned, pinned=pinned)

    def _finish(self, _: Job, call: Call, task: Finish) -> Done:
        entry = Entry(call.key().path(), task.value, task.revision) if task.value else None
        old = None if entry is None else self._preparation.live(call, entry)
        new: Object = orjson.loads(task.new)
        restore_owned(new, task.owned)
        value = self._preparation.finished(call, new, old, subresource=task.subresource)
        if entry is not None and same(value, entry):
            return Done(unchanged=True)
        return Done(value)

    def _render(self, _: Job, call: Call, task: Render) -> Done:
        shown = representation(call, lambda: task.now)
        show = shown.item if task.item else shown.one
        return Done(show(task.value, task.revision))

    def _check(self, _: Job, call: Call, task: Check) -> Done:
        documents = map(orjson.loads, task.documents)
        try:
            return Done(CHECKS[task.name](call, *documents).encode())
        except TRIPPED as error:
            return Done(tripped=repr(error))

    def _document(self, _: Job, call: Call, task: Document) -> Done:
        return Done(document(task.form, task.group, task.version, call.types.resources))


def without_owned(obj: Object) -> bytes:
    """Take the fields that managers own out of *obj*; return what ``restore_owned`` needs.

    What else the entries say stays, for admission to see and to change.
    """
    entries = obj["metadata"].get("managedFields") or []
    if not entries:
        return b""
    kept = [(_owner(entry), entry.get("fieldsV1")) for entry in entries]
    obj["metadata"]["managedFields"] = [
        {name: value for name, value in entry.items() if name != "fieldsV1"} for entry in entries
    ]
    return orjson.dumps(kept)


def restore_owned(obj: Object, owned: bytes) -> None:
    """Put back into *obj* what ``without_owned`` took out."""
    if not owned:
        return
    fields = {tuple(owner): found for owner, found in orjson.loads(owned)}
    for entry in obj["metadata"].get("managedFields") or ():
        found = fields.get(_owner(entry))
        if found is not None:
            entry["fieldsV1"] = found


def _owner(entry: Object) -> tuple[str, ...]:
    names = ("manager", "operation", "apiVersion", "subresource")
    return tuple(entry.get(name) or "" for name in names)


def same(value: bytes, entry: Entry) -> bool:
    """Whether storing *value* would change nothing but the order of members."""
    if len(value) != len(entry.value):
        return False
    if value == entry.value:
        return True
    # What differs in order only has the same bytes, so their sums are equal. Those of two times,
    # in which a heartbeat and most statuses differ, hardly ever are, and spare two decodings.
    if adler32(value) & _SUM != adler32(entry.value) & _SUM:
        return False
    return decode(value, entry.revision) == decode(entry.value, entry.revision)
