"""What the parts of a running syncer share."""

from __future__ import annotations

from dataclasses import dataclass, field

from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.config import ConfigView
from skerry.edge.syncer.edge_view import EdgeView
from skerry.edge.syncer.gate import DeletionGate
from skerry.edge.syncer.mailbox import Mailbox
from skerry.edge.syncer.memory import Memory
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.outcomes import Outcomes
from skerry.edge.syncer.rights import MissingRights
from skerry.edge.syncer.served import Served
from skerry.edge.syncer.trust import Trust
from skerry.kit.ids import IdSource
from skerry.logic.fleet.syncing.evidence import Budget, Evidence
from skerry.runtime.client import Client
from skerry.runtime.workqueue import WorkQueue


@dataclass(frozen=True, slots=True)
class SyncerSettings:
    """How one syncer behaves."""

    # Name of the SyncTarget, for logs and the lock at the edge.
    name: str = "edge"
    # Who this process is; the same again after a restart on the same data directory.
    identity: str = ""
    # Seconds between signs of life. The hub gives up on an edge after a few missed ones.
    heartbeat_seconds: float = 30.0
    # Statuses and marks are gathered for so long: bursts become one write.
    return_seconds: float = 0.1
    budget: Budget = field(default_factory=Budget)
    # Where the Lease is kept by which two syncers for one edge agree on one.
    lock_namespace: str = "default"
    # Enough to hide the edge's round trips; the edge is near.
    workers: int = 8


@dataclass(slots=True)
class SyncerState:
    """One session's caches, queues and books."""

    settings: SyncerSettings
    hub: Client
    edge: Client
    ids: IdSource
    metrics: SyncerMetrics
    memory: Memory
    trust: Trust
    gate: DeletionGate
    outcomes: Outcomes
    config: ConfigView
    mailbox: Mailbox
    view: EdgeView
    rights: MissingRights
    served_hub: Served
    served_edge: Served
    down: WorkQueue[ObjectRef]
    back: WorkQueue[ObjectRef]
    up: WorkQueue[ObjectRef]

    def evidence(self, kind: GroupResource) -> Evidence:
        """Return what the mailbox is worth as a witness for one type, now."""
        return Evidence(
            synced=self.mailbox.synced(kind),
            configured=self.config.configured,
            trusted=self.trust.trusted,
            store=self.trust.current,
            revision=self.mailbox.revision(kind),
            config_revision=self.config.revision,
        )

    def version_of(self, ref: ObjectRef) -> GroupVersionResource | None:
        """Return the type of *ref* at the version it goes down at, if that is known."""
        followed = self.mailbox.followed(ref.group_resource)
        if followed is not None:
            return followed
        record = self.memory.placed(ref)
        if record is None:
            return None
        return GroupVersionResource(ref.group, record.desired.version, ref.resource)
