"""The scale subresource: replicas of anything, in one form."""

from __future__ import annotations

from skerry.api.errors import MethodNotAllowed, NotFound
from skerry.api.objects import Object
from skerry.server.codec import decode, dump
from skerry.server.http.message import Answer, Response
from skerry.server.preparation.scaling import scale_of
from skerry.server.request.call import Call
from skerry.server.request.options import write_options
from skerry.server.rest.write import Writer
from skerry.store.base import Store


class ScaleHandler:
    """Reads and writes replicas through ``autoscaling/v1`` Scale objects."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    async def handle(self, call: Call) -> Answer:
        """Answer a request for the scale of one object."""
        paths = call.resource.scale
        if paths is None:
            raise call.not_found()
        if call.info.verb == "get":
            entry = await self._store.get(call.key().path())
            if entry is None:
                raise _absent(call)
            return _answer(scale_of(decode(entry.value, entry.revision), paths))
        if call.info.verb not in ("update", "patch"):
            raise MethodNotAllowed
        options = write_options(call.request, "UpdateOptions")
        work = self._writer.work(call, options, "scale")
        written = await self._writer.change(call, options, work, name="scale", subresource="scale")
        return _answer(scale_of(written.object(), paths))


def _absent(call: Call) -> NotFound:
    """Return what Kubernetes answers: of its own types it says that the scale is not found."""
    if call.resource.custom:
        return call.not_found()
    resource = f"{call.resource.info.resource}/scale"
    return NotFound.of(call.group or "autoscaling", resource, call.info.name)


def _answer(scale: Object) -> Answer:
    return Response(body=dump(scale))
