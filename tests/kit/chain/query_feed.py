"""A status feed by hand: what a hub would say is said by the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ClusterName, ObjectRef
from skerry.controllers.summarizer.projections import Kind
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.tables import Source, SummaryTables
from skerry.logic.fleet.tables.completeness import Scope
from skerry.runtime.client import Selection
from skerry.runtime.informer import Informer
from tests.kit.chain.summarizer_inputs import Hub

KIND = Kind("apps", "v1", "deployments", "Deployment", has_status=True)
DEPLOYMENTS = KIND.group_resource
PLACEMENT = ObjectRef("wmw", "edge.kcp.io", "edgeplacements", "", "p")
WEB = ObjectRef("", "apps", "deployments", "", "web")


class Feed:
    """Feed, inputs and watches in one."""

    def __init__(self) -> None:
        self.tables = SummaryTables()
        context = Hub().context
        self.placements = context.factory.informer(EDGE_PLACEMENTS)
        self.informers: list[Informer] = []
        self.followers: list[Any] = []
        self.extractions: dict[GroupResource, Any] = {}
        self.stored: list[Object] = []
        self.parked: list[tuple[str, ...]] = []
        self.served = True
        self.read = True
        self.followed = True
        self.lists = 0
        self.while_listing: Callable[[], None] = lambda: None
        self.notified: Callable[[ClusterName], None] = lambda _: None

    @property
    def inputs(self) -> Feed:
        return self

    @property
    def watches(self) -> Feed:
        return self

    # -- what the controller asks ------------------------------------------------------------

    def follow(self, follower: Any) -> None:
        self.followers.append(follower)

    def when_read(self, notify: Callable[[ClusterName], None]) -> None:
        self.notified = notify

    def mailbox_uid(self, cluster: ClusterName) -> str:
        return cluster.removeprefix("mb-") if cluster.startswith("mb-") else ""

    def is_workload(self, cluster: ClusterName) -> bool:
        return cluster == "wmw"

    def extract(self, kind: GroupResource, extraction: Any) -> None:
        if extraction is None:
            self.extractions.pop(kind, None)
        else:
            self.extractions[kind] = extraction

    async def reread(
        self, kind: GroupResource, _: Selection
    ) -> AsyncIterator[tuple[Kind, Sequence[Object]]]:
        self.lists += 1
        page = list(self.stored) if kind == DEPLOYMENTS else []
        self.while_listing()
        yield KIND, page

    async def wait_read(self, _: GroupResource) -> None:
        return

    def missing(self, cluster: ClusterName, kind: GroupResource) -> Scope | None:
        return None if self.read else Scope(cluster, kind)

    def is_served(self, _: ClusterName, kind: GroupResource) -> bool:
        return self.served and kind == DEPLOYMENTS

    def is_watched(self, kind: GroupResource) -> bool:
        return self.is_served("", kind)

    def is_followed(self, _: GroupResource) -> bool:
        return self.followed

    def revision(self, _: GroupResource) -> int:
        return 7

    def park(self, _: str, key: tuple[str, ...], __: Scope) -> None:
        self.parked.append(key)

    def on_parked(self, _: str, __: Callable[[tuple[str, ...]], None]) -> None:
        return

    async def run(self) -> None:
        return

    # -- what happens ------------------------------------------------------------------------

    def copy(self, uid: str, **status: Any) -> Object:
        """Return a copy of the Deployment in the mailbox of *uid*."""
        metadata = {
            "name": "web",
            "labels": {"edge.kcp.io/projected": "yes"},
            "annotations": {CLUSTER_ANNOTATION: f"mb-{uid}"},
        }
        return {"metadata": metadata, "spec": {"replicas": 2}, "status": dict(status)}

    def store(self, uid: str, **status: Any) -> None:
        """Have a copy that no event of is to come."""
        self.stored.append(self.copy(uid, **status))

    def put(self, uid: str, **status: Any) -> None:
        """Have an event of a copy."""
        obj = self.copy(uid, **status)
        self.put_lean(uid, self.lean(obj))

    def lean(self, obj: Object) -> Object:
        kept = KIND.project(obj)
        extraction = self.extractions.get(DEPLOYMENTS)
        if extraction is not None:
            kept["extract"] = extraction(KIND, obj, kept)
        return kept

    def put_lean(self, uid: str, kept: Object) -> None:
        for follower in self.followers:
            follower.object_put(KIND, WEB, uid, kept)

    def drop(self, uid: str) -> None:
        for follower in self.followers:
            follower.object_dropped(KIND, WEB, uid)

    def place(self, *uids: str) -> None:
        """Have the Deployment placed at these edges."""
        self.tables.placements.put(PLACEMENT, lambda *_: True)
        self.tables.sources.put(WEB.at("wmw"), Source({}))
        found = [Destination("inv", f"loc-{uid}", f"st-{uid}", uid) for uid in uids]
        self.tables.set_destinations(PLACEMENT, found)
        self._settle()

    def note(self, uid: str, revision: int) -> None:
        """Have the mailbox of *uid* at a revision of the placement."""
        self.tables.noted.put(uid, {PLACEMENT: revision})
        self._settle()

    def _settle(self) -> None:
        self.tables.settle()
        for follower in self.followers:
            follower.settled(self.tables.settled)
