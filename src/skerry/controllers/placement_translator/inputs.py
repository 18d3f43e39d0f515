"""The informers that the tables are filled from, and what is kept of each kind.

A hub has thousands of slices, Locations and mailboxes, and of each the translator reads a few
fields. So an informer here keeps a *lean* form of what it sees, made before it reaches the cache,
and most are packed: encoded bytes that are decoded on each read. What is lean is also quieter: a
heartbeat or a status that nobody here reads leaves the same bytes, and whoever compares old and new
sees no change. A field that somebody begins to read must be added to the lean form first; it is
absent until then, with no other sign of it. EdgePlacements are kept whole, as their status is
written from here and what is not read would be lost with an update.

Sources and copies are not here. Which kinds there are differs by workspace and changes while we
run, so they are followed one by one, by ``feeds``.

``all`` is what has to be read before anybody decides: every controller of the translator waits for
it. What a hub does not offer (guards, grants, revisions) is not in it, since a watch that nobody
serves is never read to the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from skerry.api.edge import (
    CUSTOMIZERS,
    EDGE_PLACEMENTS,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    PLACEMENT_REVISIONS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
    SYNCER_CONFIGS,
)
from skerry.api.kcp.resources import API_RESOURCE_SCHEMAS, LOCATIONS, WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.controllers.placement_translator.object_history import ObjectHistorySettings
from skerry.controllers.placement_translator.records import placement_ref_of_slice
from skerry.logic.fleet.placement.consent_record import lean_record
from skerry.logic.fleet.placement.grants import lean_grant
from skerry.logic.fleet.placement.records import lean_mailbox
from skerry.logic.fleet.translation.sources import lean_definition
from skerry.runtime.client import EVERYWHERE, cluster_of
from skerry.runtime.context import ControllerContext
from skerry.runtime.informer import Informer, InformerFactory

BY_PLACEMENT = "placement"


class Granting(NamedTuple):
    """The views of the exports with Workspaces and with SyncTargets."""

    tenancy: InformerFactory
    workload: InformerFactory


@dataclass(frozen=True, slots=True)
class Views:
    """Where the translator reads and writes.

    ``everywhere`` has the rights to read all workspaces at once and to write to each; its client
    names no cluster. ``edge`` and ``scheduling`` follow the views of those exports across all
    workspaces, ``provider`` the workspace in which mailboxes are. ``granting`` is for what
    LocationGrants depend on; without it there are no grants. ``exporter`` is the logical cluster of
    the provider workspace, whose PlacementGuards are for all; None: there can be none.
    ``has_revisions``: the edge export offers Rollouts and revisions. Where it does not, as one of a
    previous version, there are none. ``history``: None where no decisions are recorded.
    """

    everywhere: ControllerContext
    edge: InformerFactory
    scheduling: InformerFactory
    provider: InformerFactory
    granting: Granting | None = None
    exporter: ClusterName | None = None
    has_revisions: bool = True
    history: ObjectHistorySettings | None = None


class Inputs:
    """The informers; what they hold is read where it is, never copied."""

    def __init__(self, views: Views) -> None:
        context = views.everywhere
        self.wide = InformerFactory(
            context.client.for_cluster(EVERYWHERE), ids=context.ids, metrics=context.metrics
        )
        self.schemas = self.wide.informer(API_RESOURCE_SCHEMAS, transform=lean_definition)
        self.placements = views.edge.informer(EDGE_PLACEMENTS)
        self.slices = views.edge.informer(
            SINGLE_PLACEMENT_SLICES, transform=_lean_slice, packed=True
        )
        self.slices.index.add_index(BY_PLACEMENT, lambda piece: (placement_ref_of_slice(piece),))
        self.customizers = views.edge.informer(CUSTOMIZERS, packed=True)
        self.configs = views.edge.informer(SYNCER_CONFIGS, transform=_lean_config, packed=True)
        self.locations = views.scheduling.informer(LOCATIONS, transform=_lean_location, packed=True)
        self.mailboxes = views.provider.informer(WORKSPACES, transform=lean_mailbox, packed=True)
        self.grants: Informer | None = None
        self.consents: Informer | None = None
        if views.granting is not None:
            self.grants = views.edge.informer(LOCATION_GRANTS, transform=lean_grant)
            self.consents = views.edge.informer(LOCATION_CONSENTS, transform=lean_record)
        self.guards: Informer | None = None
        if views.exporter is not None:
            self.guards = views.edge.informer(PLACEMENT_GUARDS, transform=lean_grant)
        self.rollouts: Informer | None = None
        self.revisions: Informer | None = None
        if views.has_revisions:
            self.rollouts = views.edge.informer(ROLLOUTS, transform=lean_rollout)
            self.revisions = views.edge.informer(
                PLACEMENT_REVISIONS, transform=lean_revision, packed=True
            )
        self._schemas_by_name: dict[tuple[str, str], Object] | None = None
        self.schemas.add_handler(self._schema_changed)

    @property
    def all(self) -> list[Informer]:
        optional = (self.guards, self.grants, self.consents, self.rollouts, self.revisions)
        return [
            *(each for each in optional if each is not None),
            self.schemas,
            self.locations,
            self.customizers,
            self.mailboxes,
            self.configs,
            self.slices,
            self.placements,
        ]

    def schema_table(self) -> Mapping[tuple[str, str], Object] | None:
        """Return every schema by cluster and name; None until all have been read."""
        if not self.schemas.synced.is_set():
            return None
        if self._schemas_by_name is None:
            self._schemas_by_name = {
                (cluster_of(obj), obj["metadata"]["name"]): obj
                for obj in self.schemas.index.objects()
            }
        return self._schemas_by_name

    def _schema_changed(self, old: Object | None, new: Object | None) -> None:
        self._schemas_by_name = None


def _lean(obj: Object) -> Object:
    """Drop what nobody here reads."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {"metadata": metadata}


def _lean_location(obj: Object) -> Object:
    selector = (obj.get("spec") or {}).get("instanceSelector")
    spec = {} if selector is None else {"instanceSelector": selector}
    return {**_lean(obj), "spec": spec}


def _lean_slice(obj: Object) -> Object:
    return {**_lean(obj), "destinations": obj.get("destinations") or []}


def lean_revision(obj: Object) -> Object:
    """Return what is read of a PlacementRevision."""
    return {**_lean(obj), "spec": obj["spec"], "status": obj.get("status") or {}}


def lean_rollout(obj: Object) -> Object:
    """Return what is read of a Rollout: when to cut, and which revisions it names."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    wanted = {key: spec[key] for key in ("settle", "force") if key in spec}
    named = {key: status[key] for key in ("target", "stable", "failure") if key in status}
    return {**_lean(obj), "spec": wanted, "status": named}


def _lean_config(obj: Object) -> Object:
    """Return what is read of a SyncerConfig; of its status, whether there is one."""
    status: Object = {"status": {}} if obj.get("status") is not None else {}
    return {**_lean(obj), "spec": obj.get("spec") or {}, **status}
