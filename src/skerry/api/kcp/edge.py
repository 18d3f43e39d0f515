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
        "Objects born at the edge that are to be copied to the mailbox.",
        required=("resources",),
    )
    return listing(upsync_set, "What comes back from the edge besides status.")


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
                label_selector(checked=True), "Objects that match any of these are meant too."
            ),
        },
        "Cluster-scoped objects, by name or by label.",
        required=("resources",),
    )
    spec = struct(
        {
            "locationSelectors": listing(
                label_selector(checked=True), "A Location is chosen when it matches any of these."
            ),
            "locationWorkspaceSelector": label_selector(
                "Only Locations in workspaces with these labels; absent means any workspace.",
                checked=True,
            ),
            "namespaceSelector": label_selector(
                "Namespaces whose objects go to the chosen locations; absent means all.",
                checked=True,
            ),
            "nonNamespacedObjects": listing(
                non_namespaced, "Cluster-scoped objects that go there too."
            ),
            "upsync": _upsync(),
            "reportedState": text(
                "What becomes of the states that edges report: None leaves the status of the "
                "source objects alone, which is the default; Singleton writes into it what the "
                "only destination reports, while there is exactly one; Aggregate writes what the "
                "states at all destinations come to.",
                enum=["None", "Singleton", "Aggregate"],
            ),
            "wantSingletonReportedState": truth(
                "True is the older way to say reportedState: Singleton."
            ),
            "strategy": _strategy(),
        },
        "What goes where.",
    )
    status = struct(
        {
            "specGeneration": whole("Generation the rest speaks of.", format="int32"),
            "matchingLocationCount": whole("How many Locations match.", format="int32"),
            "destinationCount": whole("How many destinations there are.", format="int32"),
            "observedGeneration": whole("Generation that the conditions speak of.", format="int64"),
            "deliveredObjects": whole(
                "Objects without status that were delivered, over all destinations.",
                format="int32",
            ),
            "deliveredDestinations": whole(
                "Destinations where everything selected was applied.", format="int32"
            ),
            "healthyDestinations": whole(
                "Destinations where everything selected was applied and is healthy.",
                format="int32",
            ),
            "unhealthyDestinations": whole(
                "Destinations where something is not healthy.", format="int32"
            ),
            "unknownDestinations": whole(
                "Destinations whose edge was not heard of for as long as its Lease lasts. They "
                "count as nothing else.",
                format="int32",
            ),
            "problems": listing(
                struct(
                    {
                        "reason": text("One word for what is wrong."),
                        "message": text("A sentence for people."),
                        "destinations": whole(
                            "How many destinations it is met at.", format="int32"
                        ),
                    },
                    required=("message", "reason"),
                ),
                "What could not be put on its way to destinations; the first few.",
            ),
            "removals": guards.removals(),
            "conditions": conditions(severity=False),
        },
        "What came of it.",
        required=("matchingLocationCount", "specGeneration"),
    )
    return definition(
        GROUP,
        "EdgePlacement",
        "edgeplacements",
        {"spec": spec, "status": status},
        "EdgePlacement says which objects of its workspace go to which edge locations.",
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
            "topologyKey": text("Label of Locations whose values are spread over.", minLength=1),
            "maxSkew": whole("How uneven the spread may be.", format="int32", minimum=1),
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
                "How many locations to choose; absent means all that match.",
                format="int32",
                minimum=1,
            ),
            "spread": listing(spread, "How the choice is spread."),
            "tolerations": listing(toleration, "Tolerations for Location taints."),
            "onlyReady": truth("Whether locations that are not ready are passed over."),
        },
        "How to choose among matching locations; absent, all of them are destinations.",
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
                "Lasting number of the destination in the placement, never given again; only "
                "where the placement has a Rollout.",
                format="int64",
                minimum=1,
            ),
            "revision": whole(
                "Number of the PlacementRevision that the destination gets; absent where it gets "
                "the objects as they are.",
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
        {"destinations": listing(destination, "Where the EdgePlacement's objects go.")},
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
            "lastSyncerHeartbeatTime": moment("When the syncer last said it lives."),
            "syncerVersion": text("Version of the syncer."),
            "objects": struct(
                {
                    "wanted": whole("To be at the edge.", format="int32"),
                    "applied": whole("At the edge as wanted.", format="int32"),
                    "refused": whole("Not taken by the edge.", format="int32"),
                    "unhealthy": whole("At the edge and not well.", format="int32"),
                },
                "How many objects there are.",
            ),
            "heldDeletions": struct(
                {
                    "count": whole("How many wait.", format="int32"),
                    "approve": text("The name that approves exactly these."),
                    "names": listing(text(), "The first of them."),
                    "clusters": listing(
                        text(), "Logical clusters whose objects they are; absent if not known."
                    ),
                },
                "Deletions that wait for a person; absent when there are none.",
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
                    "namespaces": listing(text(), "Namespaces whose objects are carried."),
                    "resources": listing(
                        struct(resource, required=tuple(resource)),
                        "Resources carried in those namespaces.",
                    ),
                },
                "Namespaced objects to carry to the edge.",
            ),
            "clusterScope": listing(
                struct(
                    {**resource, "objects": listing(text(), "Names; absent means all.")},
                    required=tuple(resource),
                ),
                "Cluster-scoped objects to carry to the edge.",
            ),
            "upsync": _upsync(),
        },
        "What the syncer carries, each way.",
    )
    return definition(
        GROUP,
        "SyncerConfig",
        "syncerconfigs",
        {"spec": spec, "status": _syncer_status()},
        "SyncerConfig tells the syncer of one edge cluster what to carry.",
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
            "downSyncedResources": listing(carried, "Objects to carry to the edge."),
            "upSyncedResources": listing(carried, "Objects to carry from the edge."),
            "conversions": listing(
                struct({"upstream": carried, "downstream": carried}),
                "Objects that are another kind at the edge.",
            ),
        }
    )
    status = struct(
        {"lastSyncerHeartbeatTime": moment("When the syncer last said it lives.")},
    )
    return definition(
        GROUP,
        "EdgeSyncConfig",
        "edgesyncconfigs",
        {"spec": spec, "status": status},
        "EdgeSyncConfig tells a syncer object by object what to carry.",
        status=False,
        columns=[AGE],
        short_names=("esc",),
        categories=_CATEGORIES,
    )


def customizer() -> Raw:
    """Customizer: how objects differ from place to place."""
    replacement = struct(
        {
            "path": text("JSONPath of what is replaced.", minLength=1),
            "value": text("What replaces it, as JSON."),
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
                "Replacements, made in order.",
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["path"]},
            )
        },
        "Customizer says how objects that refer to it are changed on their way to a location.",
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
            "min": {"type": "number", "description": "Least at any destination."},
            "max": {"type": "number", "description": "Most at any destination."},
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
            "delivered": truth("Whether the present generation was applied there."),
            "healthy": text("True, False or Unknown."),
            "reason": text("One word for why it is not healthy."),
            "message": text("A sentence for people."),
            "reportTime": moment("When its state was last reported."),
            "lastHeard": moment(
                "When the edge was last heard of, where that is longer ago than its Lease lasts."
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
            "destinations": whole("How many destinations there are.", format="int32"),
            "delivered": whole("Where the present generation was applied.", format="int32"),
            "reported": whole("How many report a state.", format="int32"),
            "healthy": whole("How many are healthy.", format="int32"),
            "unhealthy": whole("How many are not healthy.", format="int32"),
            "unknown": whole(
                "How many were not heard of for as long as their Lease lasts. They count as "
                "nothing else.",
                format="int32",
            ),
            "health": text(
                "How many are healthy, for people; a dash where the kind has no health."
            ),
            "numbers": listing(numbers, "Numbers found in the reported states."),
            "conditionCounts": listing(counted, "Conditions found in the reported states."),
            "newestReportTime": moment("When the newest state was reported."),
            "oldestReportTime": moment("When the oldest state was reported."),
            "details": listing(destination, "Destinations, the unhealthy first."),
            "detailsOmitted": whole("How many destinations are not in details.", format="int32"),
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
