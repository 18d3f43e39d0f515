"""The watch verb: from its options to a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import msgspec

from skerry.api.errors import FieldError, Invalid
from skerry.kit.ids import IdSource
from skerry.kit.steps import give_way
from skerry.server.http.message import Answer, Sender, Stream
from skerry.server.request.call import Call
from skerry.server.request.options import EVERYTHING, ListOptions, list_options
from skerry.server.request.selection import Selection
from skerry.server.response.listing import turns
from skerry.server.response.representation import Representation
from skerry.server.rest.read import Reader
from skerry.server.watch.converting import ConvertingWatch
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.watch.stream import Items, WatchStream

# Kubernetes ends watches after half an hour to an hour, spread so that clients do not return
# all at once.
_SHORTEST_SECONDS = 1800.0
# A megabyte or two of usual objects.
_IN_PAGES = msgspec.structs.replace(EVERYTHING, limit=500)


class Watcher:
    """Begins watches."""

    def __init__(self, dispatcher: Dispatcher, reader: Reader, ids: IdSource) -> None:
        self._dispatcher = dispatcher
        self._reader = reader
        self._ids = ids

    async def watch(self, call: Call) -> Answer:
        """Answer with a stream of events."""
        options = list_options(call.request)
        selection = Selection(call, options)
        shown = self._reader.representation(call)
        initial = _wants_initial_state(options)
        if initial and options.initial_events and not options.bookmarks:
            # Without bookmarks nobody could tell where the initial events end.
            detail = "sendInitialEvents requires allowWatchBookmarks"
            error = FieldError.forbidden("sendInitialEvents", detail)
            raise Invalid.of("meta.k8s.io", "ListOptions", "", [error])
        if initial:
            await self._reader.fresh_enough(options.resource_version)
        stream = self._stream(call, selection, shown, options)
        after = self._after(options)

        def state() -> AsyncIterator[tuple[int, Items]]:
            return self._state(call, selection)

        async def run(sender: Sender) -> None:
            await stream.run(
                sender,
                after,
                state if initial else None,
                mark_end=bool(options.initial_events),
            )

        return Stream(run=run, content_type="application/json")

    def _stream(
        self, call: Call, selection: Selection, shown: Representation, options: ListOptions
    ) -> WatchStream:
        prefix, seconds = _prefix(call, selection), self._seconds(options)
        converts = call.resource.webhook is not None and shown.decodes
        made = partial(ConvertingWatch, call) if converts else WatchStream
        return made(
            self._dispatcher,
            prefix,
            selection,
            shown,
            seconds=seconds,
            bookmarks=options.bookmarks,
            view=call.view,
        )

    def _after(self, options: ListOptions) -> int:
        version = options.resource_version
        return int(version) if version not in ("", "0") else self._dispatcher.position

    def _seconds(self, options: ListOptions) -> float:
        if options.timeout_seconds:
            return float(options.timeout_seconds)
        return _SHORTEST_SECONDS * (1 + self._ids.fraction())

    async def _state(self, call: Call, selection: Selection) -> AsyncIterator[tuple[int, Items]]:
        """Yield the present state page by page: all workspaces' together may be a gigabyte, and
        all who follow it read it when the server has just started."""
        async for revision, entries, more, _ in self._reader.pages(call, _IN_PAGES, selection):
            items: Items = []
            for some, _ in turns(entries, selection):
                items += [
                    (entry.value, entry.revision)
                    for entry in some
                    if selection.matches(entry.value, entry.revision, key=entry.key)
                ]
                await asyncio.sleep(0)
            yield revision, items
            if more:
                await give_way()


def _wants_initial_state(options: ListOptions) -> bool:
    if options.initial_events is not None:
        return options.initial_events
    return options.resource_version in ("", "0")


def _prefix(call: Call, selection: Selection) -> str:
    if selection.only_name and (call.namespace or not call.resource.info.namespaced):
        return call.key(selection.only_name).path()
    return call.prefix
