"""Lists across all clusters, sent as they are read.

One workspace's collection is small. All workspaces' together may be hundreds of megabytes, and a
client that wants them in one answer gets them a page at a time: what is held in memory is a page
and whatever the connection has not taken yet. All pages are of one snapshot.
"""

from __future__ import annotations

import asyncio

from skerry.logic.machinery.workspaces.names import WILDCARD
from skerry.server.engine import ResourceHandler
from skerry.server.http.message import Answer, Sender, Stream
from skerry.server.request.call import Call
from skerry.server.request.options import list_options
from skerry.server.request.selection import Selection
from skerry.server.response.representation import Representation
from skerry.server.rest.read import Reader
from skerry.store.base import Page, Store

# A few megabytes of usual objects: large enough to be quick, small enough to be forgotten.
_PAGE = 500


class StreamingLists:
    """Answers large lists across clusters with a stream; leaves all else to the plain handler."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store = store
        self._reader = reader

    def before(self, plain: ResourceHandler) -> ResourceHandler:
        """Return a handler of list that streams what is large."""

        async def handle(call: Call) -> Answer:
            if call.info.cluster != WILDCARD:
                return await plain(call)
            options = list_options(call.request)
            selection = Selection(call, options)
            shown = self._reader.representation(call)
            whole = not options.limit and not options.continue_key and not options.match
            if not (whole and shown.splices and selection.everything):
                return await plain(call)
            await self._reader.fresh_enough(options.resource_version)
            first = await self._store.range(call.prefix, limit=_PAGE)
            if not first.more:
                return await plain(call)
            head, tail = shown.around_items({"resourceVersion": str(first.revision)})

            async def run(sender: Sender) -> None:
                sender.write(head)
                await self._send(sender, shown, call.prefix, first)
                sender.write(tail)
                await sender.drain()

            return Stream(run=run, content_type=shown.content_type)

        return handle

    async def _send(self, sender: Sender, shown: Representation, prefix: str, page: Page) -> None:
        """Send *page* and all that follow it, no faster than the client takes them."""
        separator = b""
        while page.entries and not sender.closed:
            parts = [shown.item(entry.value, entry.revision) for entry in page.entries]
            sender.write(separator + b",".join(parts))
            separator = b","
            await sender.drain()
            await asyncio.sleep(0)
            if not page.more:
                return
            last = page.entries[-1].key
            page = await self._store.range(prefix, after=last, limit=_PAGE, revision=page.revision)
