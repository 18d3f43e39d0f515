"""From a request to the object it asks for: the part of a write that only computes.

Nothing here reads the store, a clock or the state of the server, so that all of it can run in
another process when there is much to compute (``server.offload``). Between ``drafted`` or
``changed`` and ``finished`` stands admission, which does read the state of the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from skerry.api.errors import BadRequest, Conflict, FieldError, Invalid
from skerry.api.objects import Object
from skerry.kit.invariant import present
from skerry.logic.machinery.apply import WriteTerms, apply, track_update
from skerry.logic.machinery.builtin.definitions import builtin_schema
from skerry.logic.machinery.patch import apply_json_patch, apply_merge_patch, apply_strategic_patch
from skerry.logic.machinery.patch.values import go_text
from skerry.logic.machinery.schema import restoration_error
from skerry.server.codec import decode, dump, encode
from skerry.server.preparation import prepare
from skerry.server.preparation.draft import Draft
from skerry.server.preparation.named_version import named_version
from skerry.server.preparation.parts import part_of
from skerry.server.preparation.scaling import put, scale_of, wanted_replicas
from skerry.server.request.body import (
    as_object,
    decode_body,
    is_json,
    media_type,
    parse_json,
    parse_yaml,
    require_encodable,
)
from skerry.server.request.call import Call
from skerry.server.request.media import JSON_PATCH, MERGE_PATCH, STRATEGIC, unsupported
from skerry.server.request.options import WriteOptions
from skerry.server.request.versions import Versions, from_storage, to_storage
from skerry.store.base import Entry

# The live object, a new copy each time; None where there is none.
LiveObject = Callable[[], Object | None]
Mutate = Callable[[LiveObject], Object | None]


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


class Creation(msgspec.Struct, frozen=True):
    """What only the server can give a new object; ``uid`` and ``suffix`` are asked at most once.

    Times are text here, as they are stored: making it costs more than using it.
    """

    now: str
    uid: Callable[[], str]
    suffix: Callable[[], str]


class Mutation(msgspec.Struct, frozen=True):
    """How a request changes an object.

    ``mutate`` is given the live object, at the request's version and its own to keep; it returns
    the desired one, or None when the live one is as desired, and may be called several times.
    ``resource_version`` is the version the request names, if any. ``tracked`` says that *mutate*
    sets managedFields itself, ``trusted`` that the change is the server's own, made of what is
    valid already: there is nothing to default, to validate or to warn of. ``sparing`` says that it
    leaves what it is given as it is and makes metadata of its own, so that nobody needs a copy.
    """

    mutate: Mutate
    resource_version: str = ""
    tracked: bool = False
    trusted: bool = False
    sparing: bool = False


class Changed(msgspec.Struct, frozen=True):
    """An object before and after a change, at the version of the request."""

    new: Object
    old: Object


class Preparation:
    """Computes what writes store."""

    def __init__(self, stamp: Stamp | None = None) -> None:
        self._stamp: Stamp = stamp or NoStamp()

    # -- requests into mutations -------------------------------------------------------------

    def mutation(self, name: str, call: Call, options: WriteOptions, now: str) -> Mutation:
        """Return what the body of *call* does to an object, read as *name* says."""
        return _MUTATIONS[name](self, call, options, now)

    def create(self, call: Call, options: WriteOptions, _: str) -> Mutation:
        """Make the object anew."""
        sent = partial(self._sent, call, options, creating=True)
        draft = Draft(sent(), silently(call, sent))
        return Mutation(lambda _: draft.take())

    def update(self, call: Call, options: WriteOptions, _: str) -> Mutation:
        """Replace the object."""
        sending = partial(self._sent, call, options, creating=False, named=True)
        sent = sending()
        wanted = named_version(sent)
        draft = Draft(sent, silently(call, sending))
        resource = call.resource
        known = resource.custom or (call.group, resource.info.resource) in _CONDITIONAL
        conditional = not wanted and known

        def replace(live: LiveObject) -> Object:
            if conditional and live() is not None:
                raise _without_version(call)
            return draft.take()

        return Mutation(replace, resource_version=wanted)

    def patch(self, call: Call, options: WriteOptions, _: str) -> Mutation:
        """Apply one of the three kinds of patch."""
        patched = _patched_by(call)

        def mutate(live: LiveObject) -> Object:
            new = patched(required(live))
            try:
                self.receive(call, new, options)
            except BadRequest as error:
                # The patch may well be what it should be; what it makes of the object is not.
                raise _unfit(call, new, error) from error
            prepare.address(call, new, creating=False)
            return new

        return Mutation(mutate)

    def apply(self, call: Call, options: WriteOptions, now: str) -> Mutation:
        """Merge a configuration of which the request's field manager owns the fields."""
        applied, named = self._applied(call, options)
        anew = silently(call, lambda: self._applied(call, options)[0])
        draft = Draft(applied, anew)
        terms = self.ownership(call, options, call.info.subresource, now)
        terms["resource"] = str(call.resource.info.group_resource)

        def mutate(live: LiveObject) -> Object | None:
            result = apply(live(), draft.take(), force=options.force, **terms)
            if named and named != call.info.name:
                raise prepare.misnamed(call, named)
            return result.object if result.changed else None

        return Mutation(mutate, tracked=True)

    def _applied(self, call: Call, options: WriteOptions) -> tuple[Object, str]:
        """Return the configuration in the body, received and addressed, and the name in it.

        A name that is not the URL's is refused with what is made of it: conflicts come first.
        """
        lines: list[str] = []
        applied = as_object(parse_yaml(call.request.body, repeated=lines))
        if not applied.get("apiVersion") or not applied.get("kind"):
            raise BadRequest("apiVersion and kind must be set in an applied configuration")
        require_encodable(applied)
        self.receive(call, applied, options, lines=lines, applied=True)
        named = applied["metadata"].get("name") or ""
        applied["metadata"]["name"] = call.info.name
        prepare.address(call, applied, creating=False)
        return applied, named

    def scale(self, call: Call, _: WriteOptions, __: str) -> Mutation:
        """Set the replicas."""
        paths = present(call.resource.scale, "only types with a scale subresource are scaled")
        wanted = wanted_replicas(call)

        def mutate(live: LiveObject) -> Object:
            obj = required(live)
            put(obj, paths.spec_replicas, wanted(scale_of(obj, paths)))
            return obj

        return Mutation(mutate)

    def _sent(
        self, call: Call, options: WriteOptions, *, creating: bool, named: bool = False
    ) -> Object:
        """Return the object in the body, received and addressed; *named*: it must say its name."""
        request = call.request
        lines: list[str] = []
        media = request.headers.get("content-type", "")
        sent = decode_body(request.body, media, repeated=lines, kind=call.kind)
        repeated: Sequence[str] = ()
        if is_json(media):
            repeated = prepare.repeated_fields(request.body, sent, options)
        else:
            require_encodable(sent)
        self.receive(call, sent, options, repeated, lines=lines)
        if named and not sent["metadata"].get("name"):
            raise BadRequest(
                f"the name of the object ({call.info.name} based on URL) was undeterminable: "
                "name must be provided"
            )
        prepare.address(call, sent, creating=creating)
        return sent

    # -- new objects -------------------------------------------------------------------------

    def drafted(
        self, call: Call, options: WriteOptions, mutation: Mutation, creation: Creation
    ) -> Object:
        """Return the new object that *mutation* makes of none, complete but for admission."""
        obj = present(mutation.mutate(_absent), "what is not there cannot be as desired")
        prepare.choose_name(obj, creation.suffix)
        call.resource.default(obj)
        if not mutation.tracked:
            self._track(call, None, obj, options, creation.now)
        # Kubernetes leaves it to its store to refuse a version, which a rehearsal never sees.
        metadata = obj["metadata"]
        version = metadata.pop("resourceVersion", None) if options.dry_run else None
        prepare.begin_life(call.resource, obj, creation.now, creation.uid)
        if version:
            metadata["resourceVersion"] = version
        return obj

    # -- changes -----------------------------------------------------------------------------

    def changed(
        self,
        call: Call,
        options: WriteOptions,
        mutation: Mutation,
        entry: Entry,
        subresource: str,
        now: str,
    ) -> Changed | None:
        """Return what *mutation* makes of a stored object; None when it is as desired."""
        wanted = mutation.resource_version
        if wanted and wanted != str(entry.revision):
            raise self._stale(call)
        resource = call.resource
        if mutation.sparing:
            old = self.live(call, entry)
            new = mutation.mutate(lambda: old)
        else:
            new = mutation.mutate(lambda: self.live(call, entry))
            old = self.live(call, entry) if new is not None else {}
        if new is None:
            return None
        named = named_version(new)
        # A change may name the version it was made from; then that must still be the live one.
        if named and named != old["metadata"]["resourceVersion"]:
            raise self._stale(call)
        if not mutation.trusted:
            resource.default(new)
        part = part_of(resource, subresource)
        if part is not None:
            new = part.narrow(new, old)
        if not mutation.tracked:
            self._track(call, old, new, options, now, subresource)
        prepare.carry_over(call, new, old, part)
        return Changed(new, old)

    def finished(
        self,
        call: Call,
        new: Object,
        old: Object | None = None,
        *,
        subresource: str = "",
        trusted: bool = False,
    ) -> bytes:
        """Return the stored form of an object that admission has let through, if it is valid."""
        if not trusted:
            part = part_of(call.resource, subresource) if old is not None else None
            prepare.refuse_invalid(call, new, old, part)
            self.warn(call, new)
        stored = to_storage(call.resource, new)
        self._stamp.put(stored, call.info.cluster)
        return encode(stored)

    def rehearsed(self, value: bytes) -> bytes:
        """Return the stored form of an object that is not stored: it is in no cluster."""
        obj = decode(value, 0)
        del obj["metadata"]["resourceVersion"]
        self._stamp.strip(obj)
        return encode(obj)

    # -- shared ------------------------------------------------------------------------------

    def receive(
        self,
        call: Call,
        obj: Object,
        options: WriteOptions,
        repeated: Sequence[str] = (),
        *,
        lines: Sequence[str] = (),
        applied: bool = False,
    ) -> None:
        """Take in an object at the version the request speaks and bring it to the stored one."""
        prepare.recognise(call, obj, applied=applied)
        self._stamp.strip(obj)
        prepare.conform(call, obj, options, repeated, lines=lines, applied=applied)

    def warn(self, call: Call, obj: Object) -> None:
        """Note what the client should know of a valid object; a second try says no more."""
        warnings = call.resource.warnings(obj)
        if warnings:
            known = frozenset(call.warnings)
            call.warnings.extend(text for text in warnings if text not in known)

    def live(self, call: Call, entry: Entry) -> Object:
        """Return a stored object as a client may change it."""
        obj = decode(entry.value, entry.revision)
        self._stamp.strip(obj)
        return from_storage(call.resource, obj)

    def _stale(self, call: Call) -> Conflict:
        return Conflict.stale(call.group, call.resource.info.resource, call.info.name)

    def _track(
        self,
        call: Call,
        old: Object | None,
        new: Object,
        options: WriteOptions,
        now: str,
        subresource: str = "",
    ) -> None:
        """Note which manager set which field.

        Before the server adds anything of its own: what admission and the kind fill in belongs
        to nobody, so that an apply which does not mention it leaves it alone.
        """
        managed = track_update(old, new, **self.ownership(call, options, subresource, now))
        if managed:
            new["metadata"]["managedFields"] = managed
        else:
            new["metadata"].pop("managedFields", None)

    def ownership(
        self, call: Call, options: WriteOptions, subresource: str, now: str
    ) -> WriteTerms:
        """Return who writes, for the tracking of field managers."""
        resource, versions = call.resource, Versions(call)
        return WriteTerms(
            manager=options.field_manager,
            api_version=resource.info.api_version,
            now=now,
            schema=resource.schema,
            subresource=subresource if subresource in ("status", "scale") else "",
            has_status_subresource=resource.has_status,
            convert=versions.converted,
            schema_at=versions.schema,
        )


# Built-in types that are replaced only by whoever says which version; custom types all are.
_CONDITIONAL: Final = frozenset(
    {
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("apiregistration.k8s.io", "apiservices"),
        ("coordination.k8s.io", "leases"),
        ("node.k8s.io", "runtimeclasses"),
        ("policy", "poddisruptionbudgets"),
        ("storage.k8s.io", "csidrivers"),
        ("storage.k8s.io", "csinodes"),
        ("storage.k8s.io", "csistoragecapacities"),
        ("storage.k8s.io", "volumeattachments"),
    }
)


def _without_version(call: Call) -> Invalid:
    # An unsigned number, which Go shows in its own notation.
    detail = "Invalid value: 0x0: must be specified for an update"
    error = FieldError("FieldValueInvalid", "metadata.resourceVersion", detail)
    return Invalid.of(call.group, call.kind, call.info.name, [error])


def _absent() -> None:
    return None


def silently(call: Call, make: Callable[[], Object]) -> Callable[[], Object]:
    """Return what does *make* again for a second try: the client was warned at the first."""

    def again() -> Object:
        before = len(call.warnings)
        obj = make()
        del call.warnings[before:]
        return obj

    return again


def required(live: LiveObject) -> Object:
    """Return the live object of a change that only makes sense of one that is there."""
    return present(live(), "only what is there is patched")


def _patched_by(call: Call) -> Callable[[Object], Object]:
    """Return what the body, read as a patch of its type, does to an object."""
    media = media_type(call.request.headers.get("content-type", ""))
    if media not in (JSON_PATCH, MERGE_PATCH, STRATEGIC):
        raise unsupported(call)
    schema = call.resource.schema
    if media == STRATEGIC and call.resource.custom:
        # A definition of a kind of Kubernetes', as workspaces may have, is patched like the kind.
        known = builtin_schema(call.resource.info.gvk)
        if known is None:
            raise unsupported(call)
        schema = known
    document: Any = parse_json(call.request.body)
    if media == JSON_PATCH:
        return lambda live: apply_json_patch(live, document)
    patch = {} if document is None and media == STRATEGIC else as_object(document)
    if media == MERGE_PATCH:
        return lambda live: as_object(apply_merge_patch(live, patch))
    return lambda live: apply_strategic_patch(live, patch, schema)


def _unfit(call: Call, new: Object, error: BadRequest) -> Invalid:
    """Return the refusal of a patch that makes *new* of the object.

    Kubernetes shows what the patch made, as text; of a strategic one the patch, which it takes to
    the object by a converter that has words of its own.
    """
    why = str(error).removeprefix(prepare.cannot_be_handled(call.resource.info))
    shown = dump(new).decode()
    if media_type(call.request.headers.get("content-type", "")) == STRATEGIC:
        shown = go_text(parse_json(call.request.body))
        if not call.resource.custom:
            why = restoration_error(call.resource.schema, new) or why
    return Invalid.of("", "", "", [FieldError.invalid("patch", shown, why)])


_MUTATIONS: Final[Mapping[str, Callable[[Preparation, Call, WriteOptions, str], Mutation]]] = {
    "create": Preparation.create,
    "update": Preparation.update,
    "patch": Preparation.patch,
    "apply": Preparation.apply,
    "scale": Preparation.scale,
}
