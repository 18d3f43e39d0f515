"""What the parts of a running syncer share: its tables, its queues, and how it is to behave.

One state belongs to one session, during which hub and edge are the servers that they were when it
began. When one of them turns out to be another, revisions and UIDs in the caches are of a history
that has ended; so the whole state is dropped and built anew, and only ``recorded`` survives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.causes import Causes
from skerry.edge.syncer.deletion_budget import DeletionBudget
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.outcomes import Outcomes
from skerry.edge.syncer.tables.edge_cache import EdgeCache
from skerry.edge.syncer.tables.edge_writes import EdgeWrites
from skerry.edge.syncer.tables.mailbox import WatchedMailbox
from skerry.edge.syncer.tables.missing_rights import MissingRights
from skerry.edge.syncer.tables.served_types import ServedTypes
from skerry.edge.syncer.tables.store_identity import Trust
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.edge.syncer.tables.syncer_config import ConfigView
from skerry.kit.ids import IdSource
from skerry.logic.fleet.syncing.deletion_budget import Budget
from skerry.logic.fleet.syncing.evidence import Evidence
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


@dataclass(frozen=True, slots=True)
class SyncerState:
    """One session's tables and queues."""

    settings: SyncerSettings
    hub: Client
    edge: Client
    ids: IdSource
    metrics: SyncerMetrics
    # ``wanted``: the mailbox and what of it counts, the hub's types, and whose answers these are.
    mailbox: WatchedMailbox
    config: ConfigView
    hub_types: ServedTypes
    trust: Trust
    # ``present``: the edge, with what we wrote there laid over.
    edge_cache: EdgeCache
    edge_types: ServedTypes
    edge_writes: EdgeWrites
    rights: MissingRights
    # ``recorded``: the journal.
    records: SyncRecords
    # How things stand, why what stands is not well, and how much more may be deleted.
    outcomes: Outcomes
    causes: Causes
    budget: DeletionBudget
    # Keys of the three controllers: downsync, status write-back, upsync.
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
        record = self.records.placed(ref)
        if record is None:
            return None
        return GroupVersionResource(ref.group, record.desired.version, ref.resource)
