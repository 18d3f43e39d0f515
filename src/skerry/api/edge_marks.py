"""What each label and annotation of the edge API means, who sets it and on what.

The names are in ``api.edge``; this table is their reference, which the documentation prints. A test
holds it to have every name once.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from skerry.api import edge

Writer = Literal["people", "controllers", "syncer"]


class Mark(NamedTuple):
    """One label or annotation."""

    key: str
    on: str
    by: Writer
    value: str
    meaning: str
    label: bool = False


_SOURCE: Final = "objects in a workload's workspace"
_COPY: Final = "copies in mailboxes"

MARKS: Final[tuple[Mark, ...]] = (
    Mark(
        edge.CREATE_ONLY, _SOURCE, "people", "`true`",
        "Create it at edges and leave it as it is from then on.",
    ),
    Mark(
        edge.DOWNSYNC_OVERWRITE, _SOURCE, "people", "`false`",
        "The same, as KubeStellar spells it.",
    ),
    Mark(
        edge.ORPHAN_ON_DELETE, _SOURCE, "people", "`true`",
        "When it is no longer placed, leave it at the edge.",
    ),
    Mark(
        edge.ADOPT, _SOURCE, "people", "`true`",
        "Take over an object that was at the edge before; it is never deleted there.",
    ),
    Mark(
        edge.RECREATE, _SOURCE, "people", "`true`",
        "Where a change cannot be applied (an immutable field), delete and create again.",
    ),
    Mark(
        edge.HAND_OVER_TO, _SOURCE, "people", "path of a workspace",
        "Give the name, at edges that both place it to, to that workspace's object.",
    ),
    Mark(
        edge.CUSTOMIZER, _SOURCE, "people", "`name` or `namespace/name`",
        "Change it on its way to each place as this Customizer says.",
    ),
    Mark(
        edge.EXPAND_PARAMETERS, _SOURCE, "people", "`true`",
        "Replace `%(name)` in it, on its way, by labels and annotations of the Location.",
    ),
    Mark(
        edge.NO_ROLLBACK, _SOURCE, "people", "`true`",
        "A rollout that fails after it changed is paused, never taken back.",
    ),
    Mark(
        edge.TAINTS, "Locations", "people", "as `kubectl taint` writes them",
        "Keep placements away that do not tolerate it.",
    ),
    Mark(
        edge.APPROVE_DELETIONS, "the SyncerConfig of a mailbox", "people", "id of the hold",
        "Let the deletions go that an edge holds; `skerry edge approve-deletions` sets it.",
    ),
    Mark(
        edge.ACCEPT_STORE_IDENTITY, "the SyncerConfig of a mailbox", "people", "id of the store",
        "Believe a hub whose store is another one; `skerry edge accept-store` sets it.",
    ),
    Mark(
        edge.CONFIRM, "a LocationConsent, an EdgePlacement, what guards ask about", "people",
        "ids, comma-separated",
        "Confirm removals that grants or guards hold; `skerry grants confirm` sets it for grants.",
    ),
    Mark(
        edge.PIN, "PlacementRevisions", "people", "`true`",
        "Keep the revision, however old it is.",
    ),
    Mark(
        edge.CUT, "Rollouts with `settle.mode: Manual`", "people", "any name",
        "Cut a revision now, once for each value.",
    ),
    Mark(
        edge.PROMOTE, "Rollouts", "people", "`number/wave`",
        "Let this wave pass without waiting; `skerry rollout promote` sets it.",
    ),
    Mark(
        edge.ABORT, "Rollouts", "people", "number of a revision",
        "Give the revision up and return; `skerry rollout abort` sets it.",
    ),
    Mark(
        edge.ACCEPT, "Rollouts", "people", "`number@count`",
        "Continue although that many are bad; `skerry rollout resume` sets it.",
    ),
    Mark(
        edge.UNDO, "Rollouts", "people", "`number@newest`",
        "Go back to a revision until a newer one is cut; `skerry rollout undo` sets it.",
    ),
    Mark(
        edge.RELEASE, "Rollouts that are deleted", "people", "number of a revision",
        "Delete the Rollout, and send every destination what the workspace has at once.",
    ),
    Mark(
        edge.STAGED_REMOVAL, "EdgePlacements", "people", "`true`",
        "When it is deleted, its Rollout removes everything wave by wave.",
    ),
    Mark(
        edge.NOT_ENFORCED, "objects at an edge", "people", "sentence",
        "Parts of it that have no effect at that edge; embedded edges set it themselves.",
    ),
    Mark(
        edge.HISTORY_RETENTION, "EdgePlacements", "people", "`90d`, `12h`, `0`",
        "How long its DecisionRecords are kept; 0: none are written.",
    ),
    Mark(
        edge.CHANGED_BY, "EdgePlacements, Locations and others", "controllers", "JSON",
        "Who last changed its spec or labels, by the hub's admission; a client's own is replaced.",
    ),
    Mark(
        edge.DECIDED_BY, "DecisionRecords", "controllers", "name of a controller",
        "The controller that decided.", label=True,
    ),
    Mark(
        edge.PROJECTED, _COPY, "controllers", "`yes`",
        "A copy on its way to an edge, without effect at the hub.", label=True,
    ),
    Mark(
        edge.SOURCE_PLACEMENT, "slices and summaries", "controllers", "name, or a hash of it",
        "The EdgePlacement they belong to.", label=True,
    ),
    Mark(
        edge.NEXT_SLOT, "slices", "controllers", "number",
        "The slot that the next newcomer of a placement with a Rollout gets.",
    ),
    Mark(
        edge.CUT_SEQUENCE, "PlacementRevisions", "controllers", "number",
        "The revision with the highest of a placement is what the workspace has.",
    ),
    Mark(
        edge.REVISIONS, "the SyncerConfig of a mailbox", "controllers",
        "`cluster/name=number`, comma-separated",
        "Placements with a Rollout, and the revision of which everything is in the mailbox.",
    ),
    Mark(
        edge.TYPES_CHANGED, "the SyncerConfig of a mailbox", "controllers", "resource version",
        "Set for a moment, to notify the syncer that the mailbox serves new types.",
    ),
    Mark(
        edge.OWNER_WORKSPACE, _COPY, "controllers", "logical cluster",
        "The workspace whose object the copy is.",
    ),
    Mark(
        edge.HANDED_OVER, _COPY, "controllers", "`cluster=path`, comma-separated",
        "Hand-overs that have taken effect; each does once.",
    ),
    Mark(
        edge.WITHHELD_FROM, _COPY, "controllers", "logical clusters, comma-separated",
        "Workspaces whose objects of that name are withheld there.",
    ),
    Mark(
        edge.SOURCE_GENERATION, _COPY, "controllers", "number",
        "Generation of the source that the copy was made of, where states are aggregated.",
    ),
    Mark(
        edge.REPORTED_REPLICAS, "ReplicaSets in a workload's workspace", "controllers", "`true`",
        "What edges report of the Deployment that owns it, for tools that look there; never sent.",
    ),
    Mark(
        edge.SYNC_TARGET_NAME, "mailbox Workspaces", "controllers", "name",
        "The SyncTarget that the mailbox belongs to.",
    ),
    Mark(
        edge.HEARTBEAT_LEASE_SECONDS, "SyncTargets", "controllers", "seconds",
        "How long its edge counts as heard of, where that is not the usual minute.",
    ),
    Mark(
        edge.APPLIED, _COPY, "syncer", "digest",
        "The content that was applied at the edge.",
    ),
    Mark(
        edge.SYNC_ERROR, _COPY, "syncer", "`Reason: message`",
        "Why the edge did not take it.",
    ),
    Mark(
        edge.CAUSE, _COPY, "syncer", "`Reason: message`",
        "Why it is unhealthy at the edge; absent when it is healthy.",
    ),
    Mark(
        edge.UPSYNCED, "reports in mailboxes", "syncer", "`true`",
        "An object created at the edge and copied to the mailbox.",
    ),
)  # fmt: skip
