"""Views of edges: the fleet, one placement at its destinations, and one edge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyroaring import BitMap

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.errors import BadRequest, NotFound
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.console.decided import condition
from skerry.logic.fleet.console.edges import STATES, Edge, EdgeKey, PlacementKey
from skerry.logic.fleet.console.filters import Filter, Sight, parse_filter
from skerry.logic.fleet.console.placements import Fared, Stage, states_at, worst_by_edge
from skerry.logic.fleet.console.view import (
    Window,
    cell_at,
    keys_of,
    map_and_list,
    parse_window,
    patch,
    sentence,
    shown_labels,
    text,
)
from skerry.server.user import User
from skerry.web.eyes import UNNAMED, Eyes
from skerry.web.feed import Feed

# How soon a view shows that edges were heard of again and nothing else; see ``EdgeIndex``.
_HEARD_SECONDS = 60.0
_MAX_CONDITIONS = 32
_MAX_PROBLEMS = 20
_MAX_OBJECTS = 500
# How a summary names its object.
_IDENTITY = ("group", "version", "resource", "kind", "namespace", "name")


class FleetView:
    """All edges that somebody may see."""

    def __init__(
        self, feed: Feed, eyes: Eyes, user: User, view: Mapping[str, Any], now: Callable[[], float]
    ) -> None:
        self._feed, self._eyes, self._user, self._now = feed, eyes, user, now
        self._filter = parse_filter(view.get("q"))
        self._window = parse_window(view)

    def version(self) -> object:
        edges = self._feed.edges
        heard = (edges.heartbeats > 0, int(self._now() / _HEARD_SECONDS))
        return edges.version, self._eyes.version(), heard

    def content(self) -> Mapping[str, Any]:
        edges, sight = self._feed.edges, self._eyes.sight(self._user)
        matching = self._filter.matching(edges, sight)
        shown = map_and_list(edges, matching, edges.states, self._window, self._row)
        filtered = bool(self._filter.words)
        return {
            "sentence": sentence(shown["counts"], filtered=filtered),
            "total": len(sight.edges),
            **shown,
            "keys": keys_of(edges, sight.edges),
            "facets": {"reason": self._reasons(matching)},
        }

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return patch(before, after)

    def close(self) -> None:
        """Nothing is kept."""

    def _reasons(self, matching: BitMap) -> dict[str, int]:
        held = self._feed.edges.by_reason
        counts = {
            name: members.intersection_cardinality(matching) for name, members in held.items()
        }
        return {name: count for name, count in sorted(counts.items()) if count}

    def _row(self, number: int) -> Mapping[str, Any]:
        edge = self._feed.edges.edge(number)
        return edge_row(edge, self._eyes.rights.path_of(edge.cluster))


def edge_row(edge: Edge, path: str) -> dict[str, Any]:
    """Return one row of a list of edges."""
    return {
        "ws": path,
        "name": edge.name,
        "state": STATES[edge.state],
        "problem": text(edge.problem),
        "heard": rfc3339(edge.heard) if edge.heard else None,
        "labels": shown_labels(edge.labels),
    }


class PlacementView:
    """One placement: its objects, and how it fares at each destination."""

    def __init__(self, feed: Feed, eyes: Eyes, user: User, view: Mapping[str, Any]) -> None:
        self._feed, self._eyes, self._user = feed, eyes, user
        self._path, self._name = view.get("ws"), str(view.get("name", ""))
        self._filter: Filter = parse_filter(view.get("q"))
        self._window: Window = parse_window(view)

    def version(self) -> object:
        return self._feed.edges.version, self._feed.placements.version, self._eyes.version()

    def content(self) -> Mapping[str, Any]:
        cluster = self._eyes.cluster(self._user, self._path, EDGE_PLACEMENTS, "list")
        key = (cluster, self._name)
        placed = self._feed.placements.placements.get(key)
        if placed is None:
            raise NotFound(f"there is no EdgePlacement {self._name!r} in {self._path}")
        stages = self._eyes.stages(self._user, key)
        return {
            "conditions": [condition(each) for each in placed.conditions],
            "problem": text(placed.row.problem),
            "stages": [_stage(stage) for stage in stages[:_MAX_OBJECTS]],
            "problems": _problems(stages),
            "hidden": self._eyes.hidden(self._user, cluster),
            **self._destinations(key, worst_by_edge(stages)),
        }

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return patch(before, after)

    def close(self) -> None:
        """Nothing is kept."""

    def matching(self, key: tuple[str, str]) -> tuple[BitMap, Any, Sight]:
        """Return the destinations that match, the states there, and what may be seen of edges."""
        edges = self._feed.edges
        states = states_at(self._eyes.stages(self._user, key), edges)
        everywhere = self._eyes.sight(self._user)
        there = self._placed(key)
        if self._filter.words or self._window.by:
            # Labels are the inventory's, which need not be this person's to see.
            there &= everywhere.edges
        sight = Sight(there, everywhere.may_see_destinations, everywhere.cluster_at)
        return self._filter.matching(edges, sight, states), states, everywhere

    def _placed(self, key: PlacementKey) -> BitMap:
        """Return where the placement leads, to who may see that."""
        sees = self._eyes.sees_destinations(self._user, key[0])
        return self._feed.edges.at_placement(key) if sees else BitMap()

    def _destinations(self, key: tuple[str, str], worst: Mapping[EdgeKey, Fared]) -> dict[str, Any]:
        edges = self._feed.edges
        matching, states, everywhere = self.matching(key)

        def row(number: int) -> Mapping[str, Any]:
            cluster, name = edges.key_of(number)
            fared = worst.get((cluster, name))
            problem = "" if fared is None else text(f"{fared.reason} {fared.message}")
            shown: dict[str, Any] = {"ws": UNNAMED, "name": name, "heard": None, "labels": {}}
            if number in everywhere.edges:
                shown = edge_row(edges.edge(number), self._eyes.rights.path_of(cluster))
            return {**shown, "state": STATES[states[number]], "problem": problem}

        shown = map_and_list(edges, matching, states, self._window, row)
        placed = self._placed(key)
        return {
            "sentence": sentence(shown["counts"], filtered=bool(self._filter.words)),
            "total": len(placed),
            **shown,
            "keys": keys_of(edges, everywhere.edges & placed),
        }


class EdgeView:
    """One edge: how it stands, and every object that should be there."""

    def __init__(self, feed: Feed, eyes: Eyes, user: User, view: Mapping[str, Any]) -> None:
        self._feed, self._eyes, self._user = feed, eyes, user
        self._path, self._name = view.get("ws"), str(view.get("name", ""))

    def version(self) -> object:
        return self._feed.edges.version, self._feed.placements.version, self._eyes.version()

    def content(self) -> Mapping[str, Any]:
        cluster = self._eyes.cluster(self._user, self._path, SYNC_TARGETS, "list")
        edge = self._feed.edges.find((cluster, self._name))
        if edge is None:
            raise NotFound(f"there is no SyncTarget {self._name!r} in {self._path}")
        status = (self._feed.object(SYNC_TARGETS, (cluster, self._name)) or {}).get("status") or {}
        conditions = (status.get("conditions") or ())[:_MAX_CONDITIONS]
        placed = [
            each
            for each in self._feed.edges.placements_at((cluster, self._name))
            if self._eyes.sees_destinations(self._user, each[0])
        ]
        return {
            **edge_row(edge, str(self._path)),
            "version": text(str(status.get("syncerVersion", ""))),
            "location": text(self._feed.edges.location_of((cluster, self._name))),
            "conditions": [condition(each) for each in conditions],
            "placements": [self._named(each) for each in placed[:_MAX_OBJECTS]],
            "objects": self._objects((cluster, self._name), placed)[:_MAX_OBJECTS],
        }

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return patch({**before, "rows": []}, {**after, "rows": []})

    def close(self) -> None:
        """Nothing is kept."""

    def _named(self, placement: PlacementKey) -> dict[str, str]:
        return {"ws": self._eyes.rights.path_of(placement[0]), "name": placement[1]}

    def _objects(self, key: EdgeKey, placed: Sequence[PlacementKey]) -> list[dict[str, Any]]:
        return [
            {"object": _object(stage), "placement": self._named(placement), **_at(stage, key)}
            for placement in placed
            for stage in self._eyes.stages(self._user, placement)
        ]


def _object(stage: Stage) -> dict[str, str]:
    """Return what a stage is about; whoever may write summaries wrote that."""
    return {name: text(stage.object[name]) for name in _IDENTITY if name in stage.object}


def _at(stage: Stage, key: tuple[str, str]) -> dict[str, Any]:
    """Return how an object fares at one edge."""
    fared = next((each for each in stage.fared if each.edge == key), None)
    if fared is None:
        well = True if stage.complete else None
        return {"wanted": True, "delivered": well, "healthy": well, "cause": ""}
    healthy = {"True": True, "False": False}.get(fared.healthy)
    cause = text(f"{fared.reason} {fared.message}")
    return {"wanted": True, "delivered": fared.delivered, "healthy": healthy, "cause": cause}


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "object": _object(stage),
        "wanted": stage.wanted,
        "delivered": stage.delivered,
        "reported": stage.reported,
        "healthy": stage.healthy,
    }


def _problems(stages: list[Stage]) -> list[dict[str, Any]]:
    """Return why objects are not well, the most frequent reason first."""
    counts: dict[str, int] = {}
    messages: dict[str, str] = {}
    for stage in stages:
        for fared in stage.fared:
            if fared.state:
                reason = fared.reason or STATES[fared.state]
                counts[reason] = counts.get(reason, 0) + 1
                messages.setdefault(reason, fared.message)
    first = sorted(counts, key=lambda reason: (-counts[reason], reason))[:_MAX_PROBLEMS]
    return [
        {"reason": text(each), "count": counts[each], "message": text(messages[each])}
        for each in first
    ]


def cell(feed: Feed, eyes: Eyes, user: User, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the edge of one cell of the map that a view with the same filter shows."""
    at = given.get("index")
    if type(at) is not int:
        raise BadRequest("index: want the number of a cell")
    by = parse_window({"by": given.get("by")}).by
    edges = feed.edges
    place = given.get("placement")
    if isinstance(place, dict):
        view = PlacementView(feed, eyes, user, {**given, **place})
        cluster = eyes.cluster(user, place.get("ws"), EDGE_PLACEMENTS, "list")
        matching, _, everywhere = view.matching((cluster, str(place.get("name", ""))))
    else:
        everywhere = eyes.sight(user)
        matching = parse_filter(given.get("q")).matching(edges, everywhere)
    number = cell_at(edges, matching, by, at)
    if number is None:
        raise NotFound("there is no such cell any more")
    cluster, name = edges.key_of(number)
    path = eyes.rights.path_of(cluster) if number in everywhere.edges else UNNAMED
    return {"ws": path, "name": name}
