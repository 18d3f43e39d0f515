"""The Placements of one workspace, what they may choose from, and its namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from skerry.api.objects import Object
from skerry.controllers.tenancy.placement.keys import (
    IN,
    LOOKED_AT,
    NAMESPACES,
    PLACED,
    Workspace,
    kept_namespace,
    own_cluster,
    wanted_workspace,
)
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.fleet.placement.records import is_being_deleted, is_ready
from skerry.logic.machinery.selectors import Selector, SelectorError
from skerry.logic.machinery.workspaces.names import label_hash
from skerry.runtime.client import cluster_of
from skerry.runtime.informer import Handler, Informer, InformerFactory


@dataclass(frozen=True, slots=True)
class Instance:
    """A SyncTarget of a Location. ``evicted``: from when on nothing may stay there."""

    key: str
    ready: bool = False
    evicted: datetime | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A Location that fits a Placement, and its SyncTargets."""

    cluster: str
    name: str
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """A Placement, the Locations that fit it, and the namespaces it selects."""

    placement: Object
    choices: tuple[Choice, ...]
    namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Observed:
    """All Placements of a cluster, and its namespaces: whether each says it is placed."""

    cluster: str
    placements: tuple[Seen, ...]
    namespaces: tuple[tuple[str, bool], ...]


class Namespaces:
    """The namespaces of all workspaces, followed from the first question on.

    Most hubs have many workspaces and never a Placement.
    """

    def __init__(self, factory: InformerFactory, changed: Handler) -> None:
        self._factory = factory
        self._changed = changed
        self._informer: Informer | None = None

    async def of(self, cluster: str) -> list[Object]:
        """Return the namespaces of *cluster* that are there to stay."""
        if self._informer is None:
            self._informer = self._factory.informer(
                NAMESPACES, transform=kept_namespace, packed=True
            )
            self._informer.index.add_index(IN, own_cluster)
            self._informer.add_handler(self._changed)
        await self._informer.wait_synced()
        return [n for n in self._informer.index.by(IN, cluster) if not is_being_deleted(n)]


class Observer:
    """Looks at one workspace at a time."""

    def __init__(
        self,
        placements: Informer,
        locations: Informer,
        sync_targets: Informer,
        namespaces: Namespaces,
    ) -> None:
        self._placements = placements.index
        self._locations = locations.index
        self._sync_targets = sync_targets.index
        self._namespaces = namespaces

    async def observe(self, workspace: Workspace) -> Observed | None:
        cluster = workspace.cluster
        namespaces = await self._namespaces.of(cluster)
        placements = [p for p in self._placements.by(IN, cluster) if not is_being_deleted(p)]
        return Observed(
            cluster,
            tuple(self._seen(placement, namespaces) for placement in placements),
            tuple(
                (n["metadata"]["name"], PLACED in (n["metadata"].get("annotations") or {}))
                for n in namespaces
            ),
        )

    def _seen(self, placement: Object, namespaces: list[Object]) -> Seen:
        spec = placement["spec"]
        selector = _selector(spec.get("namespaceSelector"))
        selected = (n["metadata"] for n in namespaces)
        return Seen(
            placement,
            tuple(self._choices(placement)),
            frozenset(m["name"] for m in selected if selector.matches(m.get("labels"))),
        )

    def _choices(self, placement: Object) -> list[Choice]:
        (workspace,) = wanted_workspace(placement)
        spec = placement["spec"]
        selectors = [_selector(each) for each in spec.get("locationSelectors") or ()]
        return [
            self._choice(location)
            for location in self._locations.by(LOOKED_AT, workspace)
            if not is_being_deleted(location)
            and location["spec"].get("resource") == spec.get("locationResource")
            and any(s.matches(location["metadata"].get("labels")) for s in selectors)
        ]

    def _choice(self, location: Object) -> Choice:
        cluster = cluster_of(location)
        selector = _selector(location["spec"].get("instanceSelector"))
        return Choice(
            cluster,
            location["metadata"]["name"],
            tuple(
                _instance(cluster, target)
                for target in self._sync_targets.by(IN, cluster)
                if not is_being_deleted(target)
                and selector.matches(target["metadata"].get("labels"))
            ),
        )


def _instance(cluster: str, target: Object) -> Instance:
    evicted = target["spec"].get("evictAfter")
    key = label_hash(f"{cluster}:{target['metadata']['name']}")
    return Instance(key, is_ready(target), parse_rfc3339(evicted) if evicted else None)


def _selector(selector: Object | None) -> Selector:
    """Return a selector; one that makes no sense selects nothing."""
    try:
        return Selector.from_label_selector(selector)
    except SelectorError:
        return Selector(nothing=True)
