"""The list of placements, the worst first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.errors import BadRequest
from skerry.logic.fleet.console.edges import STATES, PlacementKey
from skerry.logic.fleet.console.filters import MAX_FILTER_LENGTH
from skerry.logic.fleet.console.placements import placement_state
from skerry.logic.fleet.console.view import parse_window, patch, text
from skerry.server.user import User
from skerry.web.eyes import Eyes
from skerry.web.feed import Feed


class PlacementsView:
    """All placements that somebody may see."""

    def __init__(self, feed: Feed, eyes: Eyes, user: User, view: Mapping[str, Any]) -> None:
        self._feed, self._eyes, self._user = feed, eyes, user
        self._words = words_of(view.get("q"))
        self._window = parse_window(view)

    def version(self) -> object:
        return self._feed.placements.version, self._eyes.version()

    def content(self) -> Mapping[str, Any]:
        seen = visible_placements(self._feed, self._eyes, self._user)
        known = self._feed.placements.placements
        path = self._eyes.rights.path_of
        matching = [
            key
            for key in seen
            if all(word in f"{path(key[0])}/{key[1]}".lower() for word in self._words)
        ]
        matching.sort(key=lambda key: known[key].row.order())
        listed = matching[self._window.first : self._window.end]
        return {
            "total": len(seen),
            "matching": len(matching),
            "rows": [self._row(key) for key in listed],
        }

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return patch(before, after)

    def close(self) -> None:
        """Nothing is kept."""

    def _row(self, key: PlacementKey) -> dict[str, Any]:
        row = self._feed.placements.placements[key].row
        return {
            "ws": self._eyes.rights.path_of(row.cluster),
            "name": row.name,
            "state": STATES[placement_state(row)],
            "problem": text(row.problem),
            "wanted": row.destinations,
            "delivered": row.delivered,
            "healthy": row.healthy,
        }


def visible_placements(feed: Feed, eyes: Eyes, user: User) -> list[PlacementKey]:
    """Return the placements that *user* may see."""
    known = feed.placements.placements
    allowed = eyes.allowed(user, {cluster for cluster, _ in known}, EDGE_PLACEMENTS)
    return [key for key in known if key[0] in allowed]


def words_of(given: object) -> list[str]:
    """Return the words of a search; each must be part of a path or name."""
    if given is None:
        return []
    if not isinstance(given, str) or len(given) > MAX_FILTER_LENGTH:
        raise BadRequest(f"q: want words, at most {MAX_FILTER_LENGTH} characters")
    return given.lower().split()
