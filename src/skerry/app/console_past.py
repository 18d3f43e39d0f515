"""Reads the past of a fleet for the console, from the decision histories that a viewer may read."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from skerry.api.errors import ApiError, BadRequest
from skerry.api.refs import ClusterName
from skerry.app.console_questions import Viewer
from skerry.app.explain_names import Unanswered
from skerry.app.history import histories
from skerry.kit.clock import Clock
from skerry.logic.fleet.console.edges import EdgeKey
from skerry.logic.fleet.console.past import Then, edges_then, together
from skerry.logic.fleet.history.fold import UnknownThen
from skerry.server.user import User
from skerry.web.eyes import Eyes
from skerry.web.feed import Feed
from skerry.web.past_view import PastFleet
from skerry.web.placements_view import visible_placements

# Workspaces whose histories are read for one look; each may have thousands of records.
_MAX_WORKSPACES: Final = 100
_AT_ONCE: Final = 4
# Who scrolls or filters asks again within seconds. Observations are recorded in batches, so that
# what is said of the last minute may change.
_CACHE_SECONDS: Final = 20.0
_MAX_CACHED: Final = 32


class PastReader:
    """Reads moments, and remembers them for as long as somebody looks."""

    def __init__(self, viewer: Viewer, feed: Feed, eyes: Eyes, clock: Clock) -> None:
        self._viewer = viewer
        self._feed = feed
        self._eyes = eyes
        self._clock = clock
        self._cache: dict[tuple[object, ...], tuple[float, PastFleet]] = {}

    async def read(self, user: User, moment: datetime) -> PastFleet:
        """Return what the histories that *user* may read tell of *moment*."""
        if moment > self._clock.now():
            raise BadRequest(f"at: {moment.isoformat()} has not come yet")
        now = self._clock.monotonic()
        self._cache = {key: each for key, each in self._cache.items() if each[0] > now}
        key = (user.name, user.groups, user.home, moment)
        cached = self._cache.get(key)
        if cached is not None:
            return cached[1]
        found = await self._found(user, moment)
        while len(self._cache) >= _MAX_CACHED:
            del self._cache[next(iter(self._cache))]
        self._cache[key] = (self._clock.monotonic() + _CACHE_SECONDS, found)
        return found

    async def _found(self, user: User, moment: datetime) -> PastFleet:
        rights = self._eyes.rights
        paths = await rights.settled(
            lambda: {
                cluster: rights.path_of(cluster)
                for cluster in {key[0] for key in visible_placements(self._feed, self._eyes, user)}
            }
        )
        if len(paths) > _MAX_WORKSPACES:
            raise BadRequest(
                f"at: the histories of {len(paths)} workspaces would be read, "
                f"want at most {_MAX_WORKSPACES}"
            )
        room = asyncio.Semaphore(_AT_ONCE)
        unknown: list[tuple[ClusterName, str, str]] = []

        async def read(cluster: ClusterName, path: str) -> dict[EdgeKey, Then]:
            async with room:
                found, gaps = await self._of(user, path, moment)
            unknown.extend((cluster, name, why) for name, why in gaps)
            return found

        async with asyncio.TaskGroup() as tasks:
            reading = {each: tasks.create_task(read(each, paths[each])) for each in sorted(paths)}
        by_cluster = {each: task.result() for each, task in reading.items()}
        return PastFleet(moment, by_cluster, tuple(sorted(unknown)))

    async def _of(
        self, user: User, path: str, moment: datetime
    ) -> tuple[dict[EdgeKey, Then], list[tuple[str, str]]]:
        """Return what the histories of one workspace tell, and which tell nothing."""
        try:
            read = await histories(self._viewer.reader(user, path))
        except (ApiError, Unanswered) as error:
            return {}, [("*", str(error))]
        parts, gaps = [], []
        for history in read:
            # Others are served between two histories of thousands of records.
            await asyncio.sleep(0)
            try:
                line, name = history.line, history.placement
                parts.append(edges_then(name, line, moment, self._clock.now()))
            except UnknownThen as error:
                gaps.append((history.placement, str(error)))
        return together(parts), gaps
