"""One Deployment, placed at two edges, as the summarizer sees it."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import PROJECTED, PROJECTED_VALUE, Mailbox, edge_placement_ref
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.summarizer.events import SummaryInputs
from skerry.controllers.summarizer.observe import PlacementObserver, SummaryObserver
from skerry.controllers.summarizer.projections import (
    BY_CLUSTER,
    BY_PLACEMENT,
    Kind,
    by_cluster,
    by_placement,
    lean_slice,
)
from skerry.controllers.summarizer.sources import SourceObserver
from skerry.controllers.summarizer.watches import KindWatches, Parked
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.summary.freshness import LIVE
from skerry.runtime.index import Index, Key, key_of
from skerry.runtime.pace import Pace
from skerry.runtime.workqueue import WorkQueue
from tests.kit.chain.summarizer_inputs import Hub

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", has_status=True)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", has_status=False)
WEB = Key("wmw", "shop", "p-deployments-web")
WEB_SOURCE = ObjectRef("wmw", "apps", "deployments", "shop", "web")
P = edge_placement_ref("wmw", "p")
_PATH = "apis/apps/v1/namespaces/shop/deployments/web"


def uid(edge: str) -> str:
    return f"00000000-0000-4000-8000-{ord(edge):012}"


def thing(cluster: str, name: str, namespace: str = "", **more: Any) -> Object:
    meta = more.pop("meta", {})
    notes = {CLUSTER_ANNOTATION: cluster, **meta.pop("annotations", {})}
    metadata = {"name": name, "annotations": notes, **meta}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **more}


def _nobody(_: object) -> None:
    """Take what nobody looks at."""


class World:
    """Edges ``a`` and ``b``; placement ``p`` goes to ``a``, in a workspace that was read."""

    def __init__(self, *, read: bool = True, **spec: Any) -> None:
        self.hub = Hub()
        self.slices, self.summaries, self.cluster_summaries, self.placements = (
            Index() for _ in range(4)
        )
        self.slices.add_index(BY_PLACEMENT, by_placement)
        self.enqueued: list[Parked] = []
        self.asked: list[ObjectRef] = []
        self.inputs = SummaryInputs(self.slices, _nobody, self.asked.append, _nobody, _nobody)
        self.watches = KindWatches(self.hub.context, self.inputs, self.enqueued.append)
        pace: Pace[Key] = Pace(WorkQueue("summaries"), LoopClock())
        self.observer = SummaryObserver(
            self.inputs, self.watches, self.summaries, self.cluster_summaries, pace
        )
        source_pace: Pace[ObjectRef] = Pace(WorkQueue("sources"), LoopClock())
        self.sources = SourceObserver(
            self.inputs, self.watches, self.hub.context.client, source_pace
        )
        placement_pace: Pace[ObjectRef] = Pace(WorkQueue("placements"), LoopClock())
        self.standings = PlacementObserver(
            self.inputs, self.watches, self.placements, placement_pace
        )
        self._held = {kind: Index() for kind in (DEPLOYMENTS, NAMESPACES)}
        for kind, index in self._held.items():
            index.add_index(BY_CLUSTER, by_cluster)
            self.inputs.watch(kind, index)
        for edge in "ab":
            self._add_edge(edge)
        self.put(NAMESPACES, thing("wmw", "shop"))
        self.put(DEPLOYMENTS, thing("wmw", "web", "shop"))
        self.place("p", "a", **spec)
        if read:
            self.watches._complete_everything("wmw")

    def _add_edge(self, edge: str) -> None:
        name = Mailbox("imw", uid(edge)).workspace
        self.inputs.mailbox_changed(None, thing("espw", name, spec={"cluster": f"mb-{edge}"}))
        self.inputs.leases_changed({f"mb-{edge}": LIVE})

    def place(self, name: str, edges: str, **spec: Any) -> None:
        """Have a placement send everything to *edges*, one letter each."""
        placement = thing("wmw", name, spec={"namespaceSelector": {}, **spec})
        placement["metadata"]["uid"] = f"uid-{name}"
        key = key_of(placement)
        self.inputs.placement_changed(self.placements.put(key, placement), placement)
        where = [
            {
                "cluster": "imw",
                "locationName": edge,
                "syncTargetName": edge,
                "syncTargetUID": uid(edge),
            }
            for edge in edges
        ]
        piece = lean_slice(thing("wmw", name, destinations=where))
        self.inputs.slice_changed(self.slices.put(key, piece), piece)

    def put(self, kind: Kind, obj: Object) -> None:
        kept = kind.project(obj)
        self.inputs.object_changed(kind, self._held[kind].put(key_of(kept), kept), kept)

    def report(self, status: Object, edge: str = "a", **notes: str) -> None:
        """Have an edge report a status of its copy, which has annotations *notes*."""
        annotations = {f"edge.kcp.io/{key.replace('_', '-')}": text for key, text in notes.items()}
        meta = {"labels": {PROJECTED: PROJECTED_VALUE}, "annotations": annotations}
        copy = thing(f"mb-{edge}", "web", "shop", status=status, meta=meta)
        self.put(DEPLOYMENTS, copy)
        self.hub.objects[f"/clusters/mb-{edge}/{_PATH}"] = copy

    def source(self, status: Object, **more: Any) -> Object:
        """Have the source be there, with *status*."""
        live = thing("wmw", "web", "shop", status=status, **more)
        self.hub.objects[f"/clusters/wmw/{_PATH}"] = live
        return live
