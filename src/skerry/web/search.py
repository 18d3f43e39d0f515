"""The search over everything that has a view of its own, within what somebody may list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from skerry.api.edge import EDGE_PLACEMENTS, ROLLOUTS, STATUS_QUERIES
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.refs import ClusterName
from skerry.server.user import User
from skerry.web.eyes import Eyes
from skerry.web.feed import Feed
from skerry.web.placements_view import words_of

# Of each kind: whoever sees more of them types another letter.
_MAX_FOUND: Final = 50

Named = tuple[ClusterName, str]


def found_by_name(feed: Feed, eyes: Eyes, user: User, given: Mapping[str, Any]) -> list[Any]:
    """Return what has every word in its name: edges first, then what is placed on them.

    A Workspace is found where it is listed, in the one above it.
    """
    words = words_of(given.get("q"))
    edges, sight = feed.edges, eyes.sight(user)
    seen: dict[str, Iterable[Named]] = {"edge": (edges.key_of(number) for number in sight.edges)}
    for kind, gvr, keys in _kinds(feed):
        seen[kind] = _allowed(eyes, user, gvr, keys)
    return [
        {"kind": kind, "ws": eyes.rights.path_of(cluster), "name": name}
        for kind, named in seen.items()
        for cluster, name in islice(_matching(named, words), _MAX_FOUND)
    ]


def _kinds(
    feed: Feed,
) -> Iterator[tuple[str, GroupVersionResource, Callable[[], Iterable[Named]]]]:
    """Yield the kinds that are found besides edges, and what gives where their objects are."""
    yield "placement", EDGE_PLACEMENTS, lambda: feed.placements.placements
    yield "rollout", ROLLOUTS, lambda: feed.objects[ROLLOUTS].rows
    yield "query", STATUS_QUERIES, lambda: feed.objects[STATUS_QUERIES].rows
    yield "workspace", WORKSPACES, lambda: ((k.cluster, k.name) for k in feed.keys(WORKSPACES))


def _allowed(
    eyes: Eyes, user: User, gvr: GroupVersionResource, keys: Callable[[], Iterable[Named]]
) -> Iterator[Named]:
    allowed = eyes.allowed(user, {cluster for cluster, _ in keys()}, gvr)
    return (key for key in keys() if key[0] in allowed)


def _matching(named: Iterable[Named], words: list[str]) -> Iterator[Named]:
    return (key for key in named if all(word in key[1].lower() for word in words))
