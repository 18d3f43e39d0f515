"""PATCH: the three patch types, and server-side apply."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.errors import BadRequest, FieldError, Invalid, UnsupportedMediaType
from skerry.logic.apply import ApplyResult, apply
from skerry.logic.patch import apply_json_patch, apply_merge_patch, apply_strategic_patch
from skerry.logic.resource import Object
from skerry.server.http.message import Answer
from skerry.server.rest import prepare
from skerry.server.rest.body import as_object, media_type, parse_json, parse_yaml
from skerry.server.rest.call import Call
from skerry.server.rest.options import WriteOptions, write_options
from skerry.server.rest.write import Fresh, Writer
from skerry.store.base import Store

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

LiveObject = Callable[[], Object]


class Patcher:
    """Carries out patches by way of the writer."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    async def patch(self, call: Call) -> Answer:
        """Answer a PATCH of an object or its status."""
        media = media_type(call.request.headers.get("content-type", ""))
        options = write_options(call.request, "PatchOptions")
        if media == APPLY:
            return await self._apply(call, options)
        if "force" in call.request.query:
            detail = "may not be specified for non-apply patch"
            raise Invalid.of(
                "meta.k8s.io", "PatchOptions", "", [FieldError.forbidden("force", detail)]
            )
        patched = self._patched_by(call, media)

        def mutate(live: LiveObject) -> Object:
            new = patched(live())
            self._writer.receive(call, new, options)
            prepare.address(call, new, creating=False)
            return new

        return self._writer.answer(call, await self._writer.change(call, options, mutate))

    def _patched_by(self, call: Call, media: str) -> Callable[[Object], Object]:
        """Return what the body, read as a patch of type *media*, does to an object."""
        if media not in (JSON_PATCH, MERGE_PATCH, STRATEGIC):
            raise _unsupported(call)
        document = parse_json(call.request.body)
        if media == JSON_PATCH:
            return lambda live: apply_json_patch(live, document)
        patch = as_object(document)
        if media == MERGE_PATCH:
            return lambda live: as_object(apply_merge_patch(live, patch))
        if call.resource.custom:
            raise _unsupported(call)
        return lambda live: apply_strategic_patch(live, patch, call.resource.schema)

    async def _apply(self, call: Call, options: WriteOptions) -> Answer:
        if not call.request.query.get("fieldManager"):
            error = FieldError.required("fieldManager", "is required for apply patch")
            raise Invalid.of("meta.k8s.io", "PatchOptions", "", [error])
        applied = as_object(parse_yaml(call.request.body))
        if not applied.get("apiVersion") or not applied.get("kind"):
            raise BadRequest("apiVersion and kind must be set in an applied configuration")
        self._writer.receive(call, applied, options)
        prepare.address(call, applied, creating=False)
        fresh = Fresh(applied)

        if await self._store.get(call.key().path()) is None and not call.info.subresource:
            call.require("create")
            obj = self._merged(call, options, None, fresh.take()).object
            written = await self._writer.create_object(call, obj, options, tracked=True)
            return self._writer.answer(call, written, status=201)

        def mutate(live: LiveObject) -> Object | None:
            result = self._merged(call, options, live(), fresh.take())
            return result.object if result.changed else None

        written = await self._writer.change(call, options, mutate, tracked=True)
        return self._writer.answer(call, written)

    def _merged(
        self, call: Call, options: WriteOptions, live: Object | None, applied: Object
    ) -> ApplyResult:
        ownership = self._writer.ownership(call, options, call.info.subresource)
        return apply(live, applied, force=options.force, **ownership)


def _unsupported(call: Call) -> UnsupportedMediaType:
    types = [JSON_PATCH, MERGE_PATCH, APPLY]
    if not call.resource.custom:
        types.insert(2, STRATEGIC)
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(types)
    )
