"""get and list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any

from skerry.api.errors import BadRequest, Gone, Timeout
from skerry.kit.caching import SHORT
from skerry.kit.metrics import Counter
from skerry.kit.text import whole_number
from skerry.logic.machinery.resource import Resource
from skerry.server.conversion import prefetch
from skerry.server.http.message import Answer, Response
from skerry.server.offload.messages import Render
from skerry.server.offload.offload import Offload
from skerry.server.request.call import Call
from skerry.server.request.options import (
    ListOptions,
    WriteOptions,
    encode_continue,
    expired_continue,
    invalid_continue,
    list_options,
)
from skerry.server.request.selection import Selection
from skerry.server.request.visibility import is_narrow, refuse_unseen
from skerry.server.response.listing import Items, collected, turns
from skerry.server.response.rendering import representation
from skerry.server.response.representation import Representation
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Compacted, Entry, Future, Store

# How long a read waits for a revision this server has not seen yet, as kube-apiserver does.
_FRESHNESS_SECONDS = 3.0
# How long a list may take from its first page to its last; Kubernetes drops history after as much.
_TOKEN_SECONDS = 300.0
# Types times media types whose representation is kept; beyond it they are worked out anew.
_MAX_PLAIN = 500
# Rows examined per store read while a selector is being applied.
_SCAN_ROWS = 5000


class _Found:
    """The items of a list, as pages of entries are looked through."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.items: list[tuple[bytes, int]] = []
        self.revision = 0
        self.last_key = ""
        # Whether entries follow the last item, and how many where that is known.
        self.more = False
        self.remaining: int | None = None

    @property
    def full(self) -> bool:
        return bool(self._limit) and len(self.items) >= self._limit

    def take_all(self, entries: Sequence[Entry], more: bool, remaining: int | None) -> None:
        """Take a page that the store has kept within the limit."""
        self.items += [(entry.value, entry.revision) for entry in entries]
        self.last_key = entries[-1].key if entries else ""
        self.more, self.remaining = more, remaining

    def take_matching(
        self, entries: Sequence[Entry], more: bool, remaining: int | None, selection: Selection
    ) -> None:
        """Take what *selection* means of a page, up to the limit."""
        for index, entry in enumerate(entries):
            if not selection.matches(entry.value, entry.revision, key=entry.key):
                continue
            self.items.append((entry.value, entry.revision))
            self.last_key = entry.key
            if self.full:
                self.more = more or index + 1 < len(entries)
                self.remaining = remaining
                return


class Reader:
    """Answers reads of one object and of collections."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        now: Callable[[], datetime],
        offload: Offload | None = None,
        lists: Counter | None = None,
    ) -> None:
        self._offload = offload or Offload()
        # Counts lists that ask for no more than what a cache has.
        self._lists = lists
        self._store = store
        self._dispatcher = dispatcher
        self._now = now
        self._plain: dict[tuple[int, str], tuple[Resource, Representation]] = {}

    def representation(self, call: Call) -> Representation:
        """Return how the answer to *call* shows objects."""
        request, resource = call.request, call.resource
        if request.query_string:
            return representation(call, self._now)
        # Nearly every request: what is shown depends on the type and on one header.
        asked = (id(resource), request.headers.get("accept", ""))
        known = self._plain.get(asked)
        if known is not None:
            return known[1]
        shown = representation(call, self._now)
        if len(asked[1]) <= SHORT:
            if len(self._plain) >= _MAX_PLAIN:
                self._plain.clear()
            # Kept with its type: no other has the same number as long as that is here.
            self._plain[asked] = (resource, shown)
        return shown

    async def shown(self, call: Call, shown: Representation, value: bytes, revision: int) -> bytes:
        """Return the body that shows one stored object, made by a worker if that takes long."""
        made = None
        if shown.decodes:
            made = await self._remote(call, shown, value, revision, item=False)
        return shown.one(value, revision) if made is None else made

    async def _remote(
        self, call: Call, shown: Representation, value: bytes, revision: int, *, item: bool
    ) -> bytes | None:
        """Return a stored object as a worker shows it; None if it is shown as soon here."""
        if not self._offload.is_heavy(value, cost=shown.cost):
            return None
        worker = self._offload.worker(call, WriteOptions())
        if worker is None:
            return None
        return (await worker.do(Render(value, revision, self._now(), item))).text

    async def collected(
        self, call: Call, shown: Representation, items: Items, metadata: dict[str, Any]
    ) -> Sequence[bytes]:
        """Return the body of a list."""
        if call.resource.webhook is not None and shown.decodes:
            await prefetch(call, items)

        async def remote(value: bytes, revision: int) -> bytes | None:
            return await self._remote(call, shown, value, revision, item=True)

        return await collected(shown, items, metadata, remote)

    async def get(self, call: Call) -> Answer:
        """Answer with one object."""
        if call.request.query_string:
            await self.fresh_enough(call.request.query.get("resourceVersion", ""))
        entry = await self._store.get(call.path())
        if entry is None:
            raise call.not_found()
        # Those who are shown some objects only are in one group; asking further costs a GET a call.
        if len(call.user.groups) == 1 and is_narrow(call.user):
            refuse_unseen(call, entry.value)
        shown = self.representation(call)
        body = shown.spliced(entry.value, entry.revision)
        if body is None:
            body = await self.shown(call, shown, entry.value, entry.revision)
        return Response(body=body, content_type=shown.content_type)

    async def fresh_enough(self, resource_version: str) -> None:
        """Wait a little for a revision that lies ahead; refuse when it does not come."""
        if resource_version in ("", "0"):
            return
        wanted = whole_number(resource_version)
        if wanted is None:
            raise BadRequest(f"Invalid value: {resource_version!r}: want a resourceVersion")
        if wanted <= self._dispatcher.position:
            return
        try:
            async with asyncio.timeout(_FRESHNESS_SECONDS):
                await self._dispatcher.reached(wanted)
        except TimeoutError as error:
            text = f"Too large resource version: {wanted}, current: {self._dispatcher.position}"
            causes = [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
            raise Timeout(
                f"Timeout: {text}", details={"causes": causes, "retryAfterSeconds": 1}
            ) from error

    async def list(self, call: Call) -> Answer:
        """Answer with a collection, or a page of it."""
        options = list_options(call.request)
        selection = Selection(call, options)
        if not options.continue_key:
            await self.fresh_enough(options.resource_version)
        if self._lists is not None and options.resource_version == "0":
            self._lists.inc((_resource_prefix(call.resource), ""))
        shown = self.representation(call)
        items, metadata = await self._page(call, options, selection)
        body = await self.collected(call, shown, items, metadata)
        return Response(body=body, content_type=shown.content_type)

    async def _page(
        self, call: Call, options: ListOptions, selection: Selection
    ) -> tuple[Sequence[tuple[bytes, int]], dict[str, Any]]:
        found = await self._found(call, options, selection)
        metadata: dict[str, Any] = {"resourceVersion": str(found.revision)}
        if found.more:
            remaining = found.remaining
            if selection.everything:
                remaining = await self._remaining(call, options, len(found.items), remaining)
                metadata["remainingItemCount"] = remaining
            # Going on in another snapshot begins anew.
            began = options.continue_began if options.continue_revision > 0 else 0.0
            metadata["continue"] = encode_continue(
                found.last_key, found.revision, remaining, began or self._now().timestamp()
            )
        return found.items, metadata

    async def _found(self, call: Call, options: ListOptions, selection: Selection) -> _Found:
        found = _Found(options.limit)
        async for revision, entries, more, remaining in self.pages(call, options, selection):
            found.revision = revision
            if selection.everything:
                found.take_all(entries, more, remaining)
            else:
                for some, further in turns(entries, selection):
                    found.take_matching(some, more or further, remaining, selection)
                    if found.full:
                        break
                    await asyncio.sleep(0)
            if found.full:
                break
        return found

    async def _remaining(
        self, call: Call, options: ListOptions, shown: int, known: int | None
    ) -> int:
        """Return how many items follow, which clients may use as an estimate.

        A store that cannot tell is asked for the whole once, and the token carries on from there.
        """
        if known is None:
            before = options.continue_remaining
            if before is None:
                before = await self._store.count(call.prefix)
            known = before - shown
        return max(1, known)

    async def pages(
        self, call: Call, options: ListOptions, selection: Selection
    ) -> AsyncIterator[tuple[int, Sequence[Entry], bool, int | None]]:
        """Yield the entries of the collection in key order, all of one snapshot."""
        revision = self._snapshot(options)
        began = options.continue_began
        if began and self._now().timestamp() - began > _TOKEN_SECONDS:
            # Also where nothing was written that would have made the snapshot an old one.
            raise expired_continue(options.continue_key)
        after, prefix = options.continue_key, call.prefix
        if selection.only_name and (call.namespace or not call.resource.info.namespaced):
            prefix = call.key(selection.only_name).path()
        limit = options.limit if selection.everything else _SCAN_ROWS if options.limit else 0
        while True:
            try:
                page = await self._store.range(prefix, after=after, limit=limit, revision=revision)
            except Compacted as error:
                if options.continue_key:
                    raise expired_continue(options.continue_key) from error
                raise Gone(
                    f"The resourceVersion for the provided list is too old: {error}"
                ) from error
            except Future as error:
                raise invalid_continue() from error
            revision = page.revision
            yield page.revision, page.entries, page.more, page.remaining
            if not page.more:
                return
            after = page.entries[-1].key

    def _snapshot(self, options: ListOptions) -> int | None:
        if options.continue_key:
            return options.continue_revision if options.continue_revision > 0 else None
        version = options.resource_version
        exact = options.match == "Exact" or (
            options.limit and not options.match and version not in ("", "0")
        )
        return int(version) if exact and version else None


def _resource_prefix(resource: Resource) -> str:
    """Return what Kubernetes and kcp call the place of a type's objects in the store."""
    info = resource.info
    place = f"/{info.group or 'core'}/{info.resource}"
    if resource.identity:
        return f"{place}/{resource.identity}"
    return f"{place}/customresources" if resource.custom else place
