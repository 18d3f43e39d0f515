"""The fleet at a moment of the past: what histories tell, seen by whoever may see them now.

Edges are those that are here and were here then; labels are of now, because nobody keeps those of
then. What was read once is not read again while somebody scrolls or filters, but what of it may be
seen is asked at every turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from skerry.api.edge import DECISION_RECORDS, EDGE_PLACEMENTS
from skerry.api.errors import BadRequest, NotFound
from skerry.api.refs import ClusterName
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.console.edges import STATES, EdgeKey
from skerry.logic.fleet.console.filters import parse_filter
from skerry.logic.fleet.console.past import PLACED, Then, sentence_then, together
from skerry.logic.fleet.console.placements import UNKNOWN
from skerry.logic.fleet.console.view import (
    cell_at,
    encoded,
    groups_of,
    keys_of,
    map_and_list,
    map_order,
    parse_window,
    patch,
    shown_labels,
    text,
)
from skerry.server.user import User
from skerry.web.eyes import Eyes
from skerry.web.feed import Feed

_MAX_NAMED = 20


@dataclass(frozen=True, slots=True)
class PastFleet:
    """What is known of a moment, by the workspace whose placements tell it.

    ``unknown``: placements whose histories do not reach there, with the reason.
    """

    moment: datetime
    by_cluster: Mapping[ClusterName, Mapping[EdgeKey, Then]]
    unknown: tuple[tuple[ClusterName, str, str], ...] = ()


# Reads what histories tell *somebody* of a moment.
ReadPast = Callable[[User, datetime], Awaitable[PastFleet]]


class PastFleetView:
    """All edges that somebody may see, as they were."""

    def __init__(
        self, feed: Feed, eyes: Eyes, user: User, view: Mapping[str, Any], past: PastFleet
    ) -> None:
        self._feed, self._eyes, self._user, self._past = feed, eyes, user, past
        self._filter = parse_filter(view.get("q"))
        self._window = parse_window(view)

    def version(self) -> object:
        edges = self._feed.edges
        return edges.membership, self._eyes.version()

    def content(self) -> Mapping[str, Any]:
        edges, sight, allowed = self._feed.edges, self._eyes.sight(self._user), self._allowed()
        then = together(self._past.by_cluster[each] for each in sorted(allowed))
        states = self._states(then)
        drawn = states.copy()
        for key in then:
            number = edges.number_of(key)
            if number is not None and drawn[number] == UNKNOWN:
                drawn[number] = PLACED
        gone = sorted(key[1] for key in then if edges.find(key) is None)

        def row(number: int) -> Mapping[str, Any]:
            edge = edges.edge(number)
            known = then.get((edge.cluster, edge.name))
            return {
                "ws": self._eyes.rights.path_of(edge.cluster),
                "name": edge.name,
                "state": STATES[states[number]] if drawn[number] != PLACED else "placed",
                "problem": "" if known is None else text(known.note),
                "heard": None,
                "labels": shown_labels(edge.labels),
            }

        matching = self._matching(then, states)
        shown = map_and_list(edges, matching, states, self._window, row)
        order = map_order(edges, groups_of(edges, matching, self._window.by))
        led = sum(edges.key_of(number) in then for number in matching)
        return {
            "sentence": sentence_then(shown["counts"], led),
            "total": len(sight.edges),
            **shown,
            "cells": encoded(drawn[order]),
            "keys": keys_of(edges, sight.edges),
            "at": rfc3339(self._past.moment),
            "gone": {"count": len(gone), "names": [text(each) for each in gone[:_MAX_NAMED]]},
            "untold": self._untold(allowed),
        }

    def cell(self, at: object) -> Mapping[str, Any]:
        """Return the edge of one cell of the map."""
        if type(at) is not int:
            raise BadRequest("index: want the number of a cell")
        edges = self._feed.edges
        then = together(self._past.by_cluster[each] for each in sorted(self._allowed()))
        matching = self._matching(then, self._states(then))
        number = cell_at(edges, matching, self._window.by, at)
        if number is None:
            raise NotFound("there is no such cell any more")
        cluster, name = edges.key_of(number)
        return {"ws": self._eyes.rights.path_of(cluster), "name": name}

    def _states(self, then: Mapping[EdgeKey, Then]) -> NDArray[np.uint8]:
        """Return, by number, how edges stood."""
        edges = self._feed.edges
        states = np.full(len(edges.states), UNKNOWN, np.uint8)
        for key, each in then.items():
            number = edges.number_of(key)
            if number is not None:
                states[number] = each.state
        return states

    def _matching(self, then: Mapping[EdgeKey, Then], states: NDArray[np.uint8]) -> BitMap:
        """Return the edges that match and were here then, as far as anybody knows."""
        edges, at = self._feed.edges, rfc3339(self._past.moment)
        found = self._filter.matching(edges, self._eyes.sight(self._user), states)
        return BitMap(
            number
            for number in found
            if edges.edge(number).created <= at or edges.key_of(number) in then
        )

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return patch(before, after)

    def close(self) -> None:
        """Nothing is kept."""

    def _allowed(self) -> set[ClusterName]:
        """Return the workspaces whose histories may be seen."""
        clusters = {*self._past.by_cluster, *(cluster for cluster, _, _ in self._past.unknown)}
        placements = self._eyes.allowed(self._user, clusters, EDGE_PLACEMENTS)
        seen = self._eyes.allowed(self._user, placements, DECISION_RECORDS)
        return {each for each in seen if each in self._past.by_cluster}

    def _untold(self, allowed: set[ClusterName]) -> list[dict[str, str]]:
        """Return which placements nothing is known of then, and why."""
        path = self._eyes.rights.path_of
        return [
            {"placement": f"{path(cluster)}/{text(name)}", "why": text(why)}
            for cluster, name, why in self._past.unknown
            if cluster in allowed
        ][:_MAX_NAMED]
