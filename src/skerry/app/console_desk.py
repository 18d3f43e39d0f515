"""What the console shows, put together: views of the feed, and what is asked about the feed.

Other questions are answered over the hub's own API, as whoever asks (``console_questions``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skerry.api.edge import ROLLOUTS, STATUS_QUERIES
from skerry.kit.clock import Clock
from skerry.logic.fleet.console.decided import query_shown, rollout_shown
from skerry.logic.fleet.console.past import moment_given
from skerry.server.user import User
from skerry.web.decided_view import DecidedView, ObjectsView, ObjectView
from skerry.web.desk import Desk, Facts, Opening, Program, Question, Subscription
from skerry.web.eyes import Eyes
from skerry.web.feed import Feed
from skerry.web.fleet_view import EdgeView, FleetView, PlacementView, cell
from skerry.web.past_view import PastFleetView, ReadPast
from skerry.web.placements_view import PlacementsView
from skerry.web.search import found_by_name


def console_desk(
    feed: Feed,
    eyes: Eyes,
    clock: Clock,
    questions: Mapping[str, Question],
    programs: Mapping[str, Program],
    facts: Facts,
    past: ReadPast,
) -> Desk:
    """Return everything that a tab can be shown, every question it may ask, and what it may run."""

    async def search(user: User, given: Mapping[str, Any]) -> Mapping[str, Any]:
        await feed.ready()
        found = await eyes.rights.settled(lambda: found_by_name(feed, eyes, user, given))
        return {"results": found}

    async def cell_of(user: User, given: Mapping[str, Any]) -> Mapping[str, Any]:
        await feed.ready()
        if (moment := moment_given(given, "at")) is not None:
            view = PastFleetView(feed, eyes, user, given, await past(user, moment))
            return await eyes.rights.settled(lambda: view.cell(given.get("index")))
        return await eyes.rights.settled(lambda: cell(feed, eyes, user, given))

    openings = _openings(feed, eyes, clock, past)
    answered = {**questions, "search": search, "cell": cell_of}
    return Desk(openings, answered, programs, facts, eyes.rights.settled, eyes.version)


def _openings(feed: Feed, eyes: Eyes, clock: Clock, past: ReadPast) -> dict[str, Opening]:
    def opening(make: Callable[[User, Mapping[str, Any]], Subscription]) -> Opening:
        async def opened(user: User, view: Mapping[str, Any]) -> Subscription:
            await feed.ready()
            return await eyes.rights.settled(lambda: make(user, view))

        return opened

    now = opening(lambda user, view: FleetView(feed, eyes, user, view, clock.monotonic))

    async def fleet(user: User, view: Mapping[str, Any]) -> Subscription:
        moment = moment_given(view, "at")
        if moment is None:
            return await now(user, view)
        await feed.ready()
        return PastFleetView(feed, eyes, user, view, await past(user, moment))

    return {
        "fleet": fleet,
        "placements": opening(lambda user, view: PlacementsView(feed, eyes, user, view)),
        "placement": opening(lambda user, view: PlacementView(feed, eyes, user, view)),
        "edge": opening(lambda user, view: EdgeView(feed, eyes, user, view)),
        "rollouts": opening(
            lambda user, view: ObjectsView(feed.objects[ROLLOUTS], ROLLOUTS, eyes, user, view)
        ),
        "rollout": opening(
            lambda user, view: ObjectView(feed, ROLLOUTS, rollout_shown, eyes, user, view)
        ),
        "queries": opening(
            lambda user, view: ObjectsView(
                feed.objects[STATUS_QUERIES], STATUS_QUERIES, eyes, user, view
            )
        ),
        "query": opening(
            lambda user, view: ObjectView(feed, STATUS_QUERIES, query_shown, eyes, user, view)
        ),
        "decided": opening(lambda user, view: DecidedView(feed, eyes, user, view)),
    }
