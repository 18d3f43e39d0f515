"""PATCH: the three patch types, and server-side apply."""

from __future__ import annotations

from skerry.api.errors import FieldError, Invalid
from skerry.server.http.message import Answer
from skerry.server.request.body import media_type
from skerry.server.request.call import Call
from skerry.server.request.media import APPLY
from skerry.server.request.options import WriteOptions, write_options
from skerry.server.rest.write import Writer
from skerry.store.base import Store


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
        work = self._writer.work(call, options, "patch")
        return await self._writer.answer(
            call, await self._writer.change(call, options, work, name="patch")
        )

    async def _apply(self, call: Call, options: WriteOptions) -> Answer:
        if not call.request.query.get("fieldManager"):
            error = FieldError.required("fieldManager", "is required for apply patch")
            raise Invalid.of("meta.k8s.io", "PatchOptions", "", [error])
        work = self._writer.work(call, options, "apply")
        if await self._store.get(call.key().path()) is None and not call.info.subresource:
            call.require("create")
            written = await self._writer.create_object(call, options, work)
            return await self._writer.answer(call, written, status=201)
        written = await self._writer.change(call, options, work, name="apply")
        return await self._writer.answer(call, written)
