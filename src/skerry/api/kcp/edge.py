"""``edge.kcp.io``: what a workload owner says, and what follows from it.

EdgePlacement says which objects go to which locations. The scheduler answers with
SinglePlacementSlices, the translator with a SyncerConfig per mailbox, the summarizer with
StatusSummaries. Customizer says how objects differ from place to place. LocationGrant, for the
owner of an inventory, says who may place what there. StatusQuery asks about all reported states.
DecisionRecords tell what was decided, when and why. PlacementRevision says what a placement with a
Rollout sends, Rollout how its changes get there. PlacementGuard says how much may change by
accident.
"""

from __future__ import annotations

from skerry.api.kcp import grants, guards, history, queries, revisions, rollouts
from skerry.api.kcp.building import (
    AGE,
    LABEL_VALUE,
    Raw,
    column,
    condition_path,
    conditions,
    definition,
    label_selector,
    listing,
    moment,
    struct,
    text,
    truth,
    whole,
)

# As in ``api.edge``, which knows this package and so cannot be asked.
GROUP = "edge.kcp.io"
_CATEGORIES = ("skerry",)


def _names(description: str, *, least: int = 0) -> Raw:
    """A list of names in which ``*`` stands alone or not at all."""
    # Schema keywords of Kubernetes 1.24 can say it: one element of any kind, or none is "*".
    more = {"minItems": least} if least else {}
    item = text(minLength=1)
    return listing(
        item,
        description,
        **more,
        anyOf=[{"maxItems": 1}, {"items": {"pattern": r"^([^*].*|\*.+)$"}}],
    )


def _upsync() -> Raw:
    upsync_set = struct(
        {
            "apiGroup": text("API group of the objects; empty for the core group."),
            "resources": _names("Resources, in lower-case plural; `*` for all.", least=1),
            "namespaces": _names("Namespaces the objects are in; `*` for all."),
            "names": _names("Names of the objects; `*` for all."),
        },
        "Objects created at the edge to copy to the mailbox.",
        required=("resources",),
    )
    return listing(upsync_set, "Objects to copy from the edge, besides status.")


def edge_placement() -> Raw:
    """EdgePlacement: what goes where.

    As long as its schema, which is one expression and reads from top to bottom.
    """
    non_namespaced = struct(
        {
            "apiGroup": text("API group of the objects; empty for the core group."),
            "resources": _names("Resources, in lower-case plural; `*` for all.", least=1),
            "resourceNames": _names("Names of the objects; `*` for all."),
            "labelSelectors": listing(
                label_selector(checked=True), "Objects that match any of these are selected too."
            ),
        },
        "Cluster-scoped objects, by name or by label.",
        required=("resources",),
    )
    spec = struct(
        {
            "locationSelectors": listing(
                label_selector(checked=True), "A Location is selected when it matches any of these."
            ),
            "locationWorkspaceSelector": label_selector(
                "Only Locations in workspaces with these labels; absent means any workspace.",
                checked=True,
            ),
            "namespaceSelector": label_selector(
                "Namespaces whose objects are placed at the selected Locations; absent means all.",
                checked=True,
            ),
            "nonNamespacedObjects": listing(
                non_namespaced, "Cluster-scoped objects that are placed too."
            ),
            "upsync": _upsync(),
            "reportedState": text(
                "How the states that edges report are written back: None leaves the status of the "
                "source objects alone, which is the default; Singleton writes into it what the "
                "only destination reports, while there is exactly one; Aggregate writes an "
                "aggregate of the states at all destinations.",
                enum=["None", "Singleton", "Aggregate"],
            ),
            "wantSingletonReportedState": truth(
                "True is the older form of reportedState: Singleton."
            ),
            "strategy": _strategy(),
        },
        "Which objects are placed at which Locations.",
    )
    status = struct(
        {
            "specGeneration": whole("Generation that the status describes.", format="int32"),
            "matchingLocationCount": whole("Number of Locations that match.", format="int32"),
            "destinationCount": whole("Number of destinations.", format="int32"),
            "observedGeneration": whole("Generation that the conditions describe.", format="int64"),
            "deliveredObjects": whole(
                "Number of objects without status that were delivered, over all destinations.",
                format="int32",
            ),
            "deliveredDestinations": whole(
                "Number of destinations where everything selected was applied.", format="int32"
            ),
            "healthyDestinations": whole(
                "Number of destinations where everything selected was applied and is healthy.",
                format="int32",
            ),
            "unhealthyDestinations": whole(
                "Number of destinations where something is not healthy.", format="int32"
            ),
            "unknownDestinations": whole(
                "Number of destinations whose edge was last heard of longer ago than its Lease "
                "lasts. They are counted nowhere else.",
                format="int32",
            ),
            "problems": listing(
                struct(
                    {
                        "reason": text("Reason, in one CamelCase word."),
                        "message": text("Human-readable message."),
                        "destinations": whole(
                            "Number of destinations with the problem.", format="int32"
                        ),
                    },
                    required=("message", "reason"),
                ),
                "Problems that keep objects from being sent to destinations; the first few.",
            ),
            "removals": guards.removals(),
            "conditions": conditions(severity=False),
        },
        "Most recently observed status.",
        required=("matchingLocationCount", "specGeneration"),
    )
    return definition(
        GROUP,
        "EdgePlacement",
        "edgeplacements",
        {"spec": spec, "status": status},
        "EdgePlacement defines which objects of its workspace are placed at which edge Locations.",
        columns=[
            column("Locations", ".status.matchingLocationCount", "integer", priority=1),
            column("Destinations", ".status.destinationCount", "integer"),
            column("Delivered", ".status.deliveredDestinations", "integer"),
            column("Healthy", ".status.healthyDestinations", "integer"),
            column("Unknown", ".status.unknownDestinations", "integer", priority=1),
            column("Ready", condition_path("Ready")),
            column("Message", condition_path("Ready", "message"), priority=1),
            AGE,
        ],
        short_names=("epl",),
        categories=_CATEGORIES,
    )


def _strategy() -> Raw:
    spread = struct(
        {
            "topologyKey": text(
                "Label of Locations over whose values destinations are spread.", minLength=1
            ),
            "maxSkew": whole(
                "Degree to which destinations may be unevenly spread.", format="int32", minimum=1
            ),
        },
        required=("topologyKey",),
    )
    toleration = struct(
        {
            "key": text("Taint key; empty with Exists tolerates all."),
            "operator": text("Equal or Exists.", enum=["Equal", "Exists"]),
            "value": text("Taint value.", maxLength=63, pattern=LABEL_VALUE),
            "effect": text("Effect tolerated; empty for all."),
        }
    )
    return struct(
        {
            "numberOfLocations": whole(
                "Number of Locations to select; absent means all that match.",
                format="int32",
                minimum=1,
            ),
            "spread": listing(spread, "How the selected Locations are spread."),
            "tolerations": listing(toleration, "Tolerations for Location taints."),
            "onlyReady": truth("Whether Locations that are not ready are skipped."),
        },
        "How to select among matching Locations; absent means all of them.",
    )


def single_placement_slice() -> Raw:
    """SinglePlacementSlice: where, resolved."""
    destination = struct(
        {
            "cluster": text("Logical cluster of the Location and SyncTarget."),
            "locationName": text("Name of the Location."),
            "syncTargetName": text("Name of the SyncTarget."),
            "syncTargetUID": text("UID of the SyncTarget."),
            "slot": whole(
                "Permanent number of the destination, never reused; only with a Rollout.",
                format="int64",
                minimum=1,
                maximum=history.MAX_SLOT,
            ),
            "revision": whole(
                "Number of the PlacementRevision that is sent; absent: objects as they are.",
                format="int64",
                minimum=1,
            ),
        },
        required=("cluster", "locationName", "syncTargetName", "syncTargetUID"),
    )
    return definition(
        GROUP,
        "SinglePlacementSlice",
        "singleplacementslices",
        {"destinations": listing(destination, "Destinations of the EdgePlacement's objects.")},
        "SinglePlacementSlice holds destinations of the EdgePlacement of the same name.",
        status=False,
        columns=[AGE],
        short_names=("sps",),
        categories=_CATEGORIES,
        required=("destinations",),
    )


def _syncer_status() -> Raw:
    return struct(
        {
            "lastSyncerHeartbeatTime": moment("Time of the syncer's last heartbeat."),
            "syncerVersion": text("Version of the syncer."),
            "objects": struct(
                {
                    "wanted": whole("Desired at the edge.", format="int32"),
                    "applied": whole("Applied at the edge.", format="int32"),
                    "refused": whole("Refused by the edge.", format="int32"),
                    "unhealthy": whole("At the edge and unhealthy.", format="int32"),
                },
                "Number of objects, by state.",
            ),
            "heldDeletions": struct(
                {
                    "count": whole("Number of deletions held.", format="int32"),
                    "approve": text("Name that approves exactly these deletions."),
                    "names": listing(text(), "The first objects held."),
                    "clusters": listing(
                        text(), "Logical clusters whose objects they are; absent if not known."
                    ),
                },
                "Deletions that wait for approval; absent when there are none.",
            ),
            "conditions": conditions(severity=False),
        }
    )


def syncer_config() -> Raw:
    """SyncerConfig: what a syncer carries."""
    resource = {
        "group": text("API group; empty for the core group."),
        "resource": text("Resource, in lower-case plural."),
        "apiVersion": text("Version, without the group."),
    }
    spec = struct(
        {
            "namespaceScope": struct(
                {
                    "namespaces": listing(text(), "Namespaces whose objects are synced."),
                    "resources": listing(
                        struct(resource, required=tuple(resource)),
                        "Resources synced in those namespaces.",
                    ),
                },
                "Namespaced objects to sync to the edge.",
            ),
            "clusterScope": listing(
                struct(
                    {**resource, "objects": listing(text(), "Names; absent means all.")},
                    required=tuple(resource),
                ),
                "Cluster-scoped objects to sync to the edge.",
            ),
            "upsync": _upsync(),
        },
        "Objects to sync, in each direction.",
    )
    return definition(
        GROUP,
        "SyncerConfig",
        "syncerconfigs",
        {"spec": spec, "status": _syncer_status()},
        "SyncerConfig configures the syncer of one edge cluster.",
        columns=[column("Heartbeat", ".status.lastSyncerHeartbeatTime", "date"), AGE],
        short_names=("escfg",),
        categories=_CATEGORIES,
    )


def edge_sync_config() -> Raw:
    """EdgeSyncConfig: what older syncers carry; kept for them, and read by nothing here."""
    carried = struct(
        {
            "kind": text("Kind of the objects."),
            "group": text("API group of the objects."),
            "version": text("Version of the objects."),
            "name": text("Name; * means all."),
            "namespace": text("Namespace of the objects."),
        }
    )
    spec = struct(
        {
            "downSyncedResources": listing(carried, "Objects to sync to the edge."),
            "upSyncedResources": listing(carried, "Objects to sync from the edge."),
            "conversions": listing(
                struct({"upstream": carried, "downstream": carried}),
                "Objects that have another kind at the edge.",
            ),
        }
    )
    status = struct(
        {"lastSyncerHeartbeatTime": moment("Time of the syncer's last heartbeat.")},
    )
    return definition(
        GROUP,
        "EdgeSyncConfig",
        "edgesyncconfigs",
        {"spec": spec, "status": status},
        "EdgeSyncConfig configures a syncer object by object.",
        status=False,
        columns=[AGE],
        short_names=("esc",),
        categories=_CATEGORIES,
    )


def customizer() -> Raw:
    """Customizer: how objects differ from place to place."""
    replacement = struct(
        {
            "path": text("JSONPath of the value to replace.", minLength=1),
            "value": text("New value, as JSON."),
        },
        required=("path", "value"),
    )
    return definition(
        GROUP,
        "Customizer",
        "customizers",
        {
            "replacements": listing(
                replacement,
                "Replacements, applied in order.",
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["path"]},
            )
        },
        "Customizer defines how objects that refer to it are customized for each Location.",
        namespaced=True,
        status=False,
        columns=[AGE],
        categories=_CATEGORIES,
    )


def _summary(kind: str, plural: str, short_name: str, *, namespaced: bool) -> Raw:
    # As long as its schema, which is one expression and reads from top to bottom.
    reference = struct(
        {
            "group": text("API group of the object."),
            "version": text("Version of the object."),
            "resource": text("Resource, in lower-case plural."),
            "kind": text("Kind of the object."),
            "namespace": text("Namespace of the object."),
            "name": text("Name of the object."),
        },
        "The object whose reported state is summarised.",
        required=("kind", "name", "resource", "version"),
    )
    numbers = struct(
        {
            "field": text("Path of the field below status."),
            "sum": {"type": "number", "description": "Sum over destinations."},
            "min": {"type": "number", "description": "Minimum over destinations."},
            "max": {"type": "number", "description": "Maximum over destinations."},
        },
        required=("field", "max", "min", "sum"),
    )
    counted = struct(
        {
            "type": text("Type of the condition."),
            "true": whole(format="int32"),
            "false": whole(format="int32"),
            "unknown": whole(format="int32"),
        },
        required=("false", "true", "type", "unknown"),
    )
    destination = struct(
        {
            "cluster": text("Logical cluster of the SyncTarget."),
            "location": text("Name of the Location."),
            "syncTarget": text("Name of the SyncTarget."),
            "delivered": truth("Whether the current generation was applied there."),
            "healthy": text("True, False or Unknown."),
            "reason": text("Reason why it is not healthy, in one CamelCase word."),
            "message": text("Human-readable message."),
            "reportTime": moment("Time at which its state was last reported."),
            "lastHeard": moment(
                "Time of the edge's last heartbeat, where that is longer ago than its Lease lasts."
            ),
        },
        required=("cluster", "location", "syncTarget"),
    )
    return definition(
        GROUP,
        kind,
        plural,
        {
            "placement": text("Name of the EdgePlacement."),
            "object": reference,
            "destinations": whole("Number of destinations.", format="int32"),
            "delivered": whole(
                "Number of destinations where the current generation was applied.", format="int32"
            ),
            "reported": whole("Number of destinations that report a state.", format="int32"),
            "healthy": whole("Number of destinations that are healthy.", format="int32"),
            "unhealthy": whole("Number of destinations that are not healthy.", format="int32"),
            "unknown": whole(
                "Number of destinations last heard of longer ago than their Lease lasts. They "
                "are counted nowhere else.",
                format="int32",
            ),
            "health": text(
                "Healthy destinations, of all, for display; a dash where the kind has no health."
            ),
            "numbers": listing(numbers, "Numbers found in the reported states."),
            "conditionCounts": listing(counted, "Conditions found in the reported states."),
            "newestReportTime": moment("Time at which the newest state was reported."),
            "oldestReportTime": moment("Time at which the oldest state was reported."),
            "details": listing(destination, "Destinations, the unhealthy first."),
            "detailsOmitted": whole(
                "Number of destinations that are not in details.", format="int32"
            ),
        },
        "Summary of the states one object has at its destinations.",
        namespaced=namespaced,
        status=False,
        columns=[
            column("Kind", ".object.kind"),
            column("Object", ".object.name"),
            column("Destinations", ".destinations", "integer"),
            column("Delivered", ".delivered", "integer"),
            column("Reported", ".reported", "integer", priority=1),
            column("Healthy", ".health"),
            column("Unhealthy", ".unhealthy", "integer"),
            column("Unknown", ".unknown", "integer"),
            column("Placement", ".placement", priority=1),
            AGE,
        ],
        short_names=(short_name,),
        categories=_CATEGORIES,
    )


def definitions() -> list[Raw]:
    """Return every kind of the group."""
    return [
        edge_placement(),
        single_placement_slice(),
        syncer_config(),
        edge_sync_config(),
        customizer(),
        _summary("StatusSummary", "statussummaries", "ss", namespaced=True),
        _summary("ClusterStatusSummary", "clusterstatussummaries", "css", namespaced=False),
        *grants.definitions(GROUP, _CATEGORIES),
        *queries.definitions(GROUP, _CATEGORIES),
        *history.definitions(GROUP, _CATEGORIES),
        *revisions.definitions(GROUP, _CATEGORIES),
        *guards.definitions(GROUP, _CATEGORIES),
        *rollouts.definitions(GROUP, _CATEGORIES),
    ]
