"""Every name of the edge API, once: kinds, labels, annotations, conditions, mailboxes, owners.

The group ``edge.kcp.io`` is how workload owners, the hub's controllers and the syncers talk to
each other; what is spelled here is what goes over the wire. Identities of edges (users,
certificates, credentials) have a module of their own, ``api.edge_identity``; the schemas of the
kinds are in ``api.kcp.edge``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

from skerry.api.kcp.resources import API_BINDINGS, LOCATIONS, SYNC_TARGETS
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.refs import ClusterName, ObjectRef

# -- the group and its kinds -----------------------------------------------------------------

GROUP: Final = "edge.kcp.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
DOMAIN: Final = f"{GROUP}/"  # of labels and annotations

EDGE_PLACEMENTS: Final = GroupVersionResource(GROUP, VERSION, "edgeplacements")
SINGLE_PLACEMENT_SLICES: Final = GroupVersionResource(GROUP, VERSION, "singleplacementslices")
CUSTOMIZERS: Final = GroupVersionResource(GROUP, VERSION, "customizers")
SYNCER_CONFIGS: Final = GroupVersionResource(GROUP, VERSION, "syncerconfigs")
STATUS_SUMMARIES: Final = GroupVersionResource(GROUP, VERSION, "statussummaries")
CLUSTER_STATUS_SUMMARIES: Final = GroupVersionResource(GROUP, VERSION, "clusterstatussummaries")
STATUS_QUERIES: Final = GroupVersionResource(GROUP, VERSION, "statusqueries")
LOCATION_GRANTS: Final = GroupVersionResource(GROUP, VERSION, "locationgrants")
LOCATION_CONSENTS: Final = GroupVersionResource(GROUP, VERSION, "locationconsents")
DECISION_RECORDS: Final = GroupVersionResource(GROUP, VERSION, "decisionrecords")
PLACEMENT_REVISIONS: Final = GroupVersionResource(GROUP, VERSION, "placementrevisions")
REVISION_CONTENTS: Final = GroupVersionResource(GROUP, VERSION, "revisioncontents")
PLACEMENT_GUARDS: Final = GroupVersionResource(GROUP, VERSION, "placementguards")
ROLLOUTS: Final = GroupVersionResource(GROUP, VERSION, "rollouts")
ROLLOUT_APPROVALS: Final = GroupVersionResource(GROUP, VERSION, "rolloutapprovals")

# The only SyncerConfig of a mailbox, and the only LocationConsent of an inventory workspace.
SYNCER_CONFIG_NAME: Final = "the-one"
LOCATION_CONSENT_NAME: Final = "default"
# Where the edge API is exported from and mailboxes are, unless somebody chose another place.
USUAL_PROVIDER: Final = "root:espw"

# -- identities ------------------------------------------------------------------------------


def edge_placement_ref(cluster: ClusterName, name: str) -> ObjectRef:
    """Return the identity of an EdgePlacement."""
    return ObjectRef(cluster, GROUP, EDGE_PLACEMENTS.resource, "", name)


def location_grant_ref(cluster: ClusterName, name: str) -> ObjectRef:
    """Return the identity of a LocationGrant."""
    return ObjectRef(cluster, GROUP, LOCATION_GRANTS.resource, "", name)


def location_ref(cluster: ClusterName, name: str) -> ObjectRef:
    """Return the identity of a Location."""
    return ObjectRef(cluster, LOCATIONS.group, LOCATIONS.resource, "", name)


def sync_target_ref(cluster: ClusterName, name: str) -> ObjectRef:
    """Return the identity of a SyncTarget."""
    return ObjectRef(cluster, SYNC_TARGETS.group, SYNC_TARGETS.resource, "", name)


# -- mailboxes -------------------------------------------------------------------------------

# In every mailbox: the binding to the export of the provider workspace, which has this name.
MAILBOX_BINDING: Final = "bind-edge"
EXPORT: Final = GROUP

_MAILBOX_SEPARATOR = "-mb-"
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class Mailbox(NamedTuple):
    """The mailbox of a SyncTarget: the logical cluster of its inventory workspace, and its UID."""

    cluster: ClusterName
    uid: str

    @property
    def workspace(self) -> str:
        """The name of the Workspace, a child of the provider workspace."""
        return f"{self.cluster}{_MAILBOX_SEPARATOR}{self.uid}"

    def __str__(self) -> str:
        return self.workspace


def mailbox_named(workspace: str) -> Mailbox | None:
    """Return the mailbox a workspace's name stands for; None for any other workspace."""
    parts = workspace.split(_MAILBOX_SEPARATOR)
    if len(parts) != 2 or not parts[0] or _UID(parts[1]) is None:
        return None
    return Mailbox(parts[0], parts[1])


# -- copies ----------------------------------------------------------------------------------

# Label, value "yes": set by the translator on every copy that it puts into a mailbox.
PROJECTED: Final = "edge.kcp.io/projected"
PROJECTED_VALUE: Final = "yes"
# Selects what is no copy.
NOT_PROJECTED: Final = f"{PROJECTED}!={PROJECTED_VALUE}"
# Annotation, value "true": on what a syncer brought up from its edge.
UPSYNCED: Final = "edge.kcp.io/upsynced"


def is_projected(obj: Mapping[str, Any]) -> bool:
    """Tell whether *obj* says that it is a copy in a mailbox."""
    labels = (obj.get("metadata") or {}).get("labels") or {}
    return bool(labels.get(PROJECTED) == PROJECTED_VALUE)


def is_upsynced(obj: Mapping[str, Any]) -> bool:
    """Tell whether *obj* says that a syncer brought it up from its edge."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(UPSYNCED) == "true")


def is_inert(obj: Mapping[str, Any]) -> bool:
    """Tell whether *obj* is a copy on its way to an edge, or a report of one.

    Both are inert on the hub whatever their kind: RBAC among them grants nothing here, a quota
    limits nothing, a ServiceAccount gets no token, a Secret is no credential, an APIBinding
    agrees to no claim. They mean what they say at the edge.
    """
    metadata = obj.get("metadata") or {}
    return is_passing_through(metadata.get("labels"), metadata.get("annotations"))


def is_passing_through(
    labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> bool:
    """Tell whether an object with these labels and annotations is inert."""
    copied = (labels or {}).get(PROJECTED) == PROJECTED_VALUE
    return copied or (annotations or {}).get(UPSYNCED) == "true"


def is_report(obj: Mapping[str, Any]) -> bool:
    """Tell whether a mailbox object is an edge's report of an object born there.

    What is placed under the name of such a report takes its place: it is a copy from then on.
    """
    return is_upsynced(obj) and not is_projected(obj)


# Asked for by the owner of an object, with the value "true".
CREATE_ONLY: Final = "edge.kcp.io/create-only"
ORPHAN_ON_DELETE: Final = "edge.kcp.io/orphan-on-delete"
ADOPT: Final = "edge.kcp.io/adopt"
RECREATE: Final = "edge.kcp.io/recreate"
# KubeStellar's way to say create-only, with the value "false".
DOWNSYNC_OVERWRITE: Final = "edge.kcp.io/downsync-overwrite"
# On an object, by its owner: the path of the workspace that gets its name at edges both place to.
HAND_OVER_TO: Final = "edge.kcp.io/hand-over-to"
# On a copy, by the translator: the cluster whose object it is, and the hand-overs that took effect.
OWNER_WORKSPACE: Final = "edge.kcp.io/owner-workspace"
HANDED_OVER: Final = "edge.kcp.io/handed-over"
# And clusters whose objects of that name are withheld there: nothing reported of it is about them.
WITHHELD_FROM: Final = "edge.kcp.io/withheld-from"
# On a copy, by the translator, where the state of all copies becomes that of their source: the
# generation of the source that the copy was made of.
SOURCE_GENERATION: Final = "edge.kcp.io/source-generation"
# Customization: the name of a Customizer, and whether ``%(…)`` in the object itself is expanded.
CUSTOMIZER: Final = "edge.kcp.io/customizer"
EXPAND_PARAMETERS: Final = "edge.kcp.io/expand-parameters"

# Domains of the labels and annotations by which a tool knows again what it applied: Argo CD, Flux,
# Helm, kubectl's ApplySets. The tool works on the source. On a copy its mark would name an owner
# that the edge does not have, or make an edge's own tool prune what is not its own.
_TOOL_DOMAINS = (
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "meta.helm.sh/",
    "applyset.kubernetes.io/",
)
# Repeats the whole source; it is of use only to the kubectl that wrote it.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def is_tool_key(key: str) -> bool:
    """Tell whether a label or annotation is a tool's note about a source, and stays with it.

    ``app.kubernetes.io/instance`` and ``managed-by`` are none: people select by them.
    """
    return key.startswith(_TOOL_DOMAINS) or key == _LAST_APPLIED


# Written by the syncer on mailbox objects: what it applied, or why it could not.
APPLIED: Final = "edge.kcp.io/applied"
SYNC_ERROR: Final = "edge.kcp.io/sync-error"
# Why an object that was applied is not doing well at the edge: ``Reason: message``. Also the
# syncer's, beside the status; absent when all is well.
CAUSE: Final = "edge.kcp.io/cause"
MAX_CAUSE_BYTES: Final = 256

# On an object at the edge: what of it has no effect there. The syncer brings it up as the cause.
NOT_ENFORCED: Final = "edge.kcp.io/not-enforced"

# On the SyncerConfig, by a person who was asked.
APPROVE_DELETIONS: Final = "edge.kcp.io/approve-deletions"
ACCEPT_STORE_IDENTITY: Final = "edge.kcp.io/accept-store-identity"

# Field managers of the syncer at the edge, and in the mailbox.
EDGE_FIELD_MANAGER: Final = "skerry-syncer"
MAILBOX_FIELD_MANAGER: Final = "skerry-syncer-upsync"

# -- locations and sync targets --------------------------------------------------------------

# On a Location, in the form of ``kubectl taint``.
TAINTS: Final = "edge.kcp.io/taints"
# The Lease of a mailbox by which its edge shows that it lives.
HEARTBEAT_LEASE: Final = "syncer-heartbeat"
HEARTBEAT_NAMESPACE: Final = "default"
# An edge that was lost is noticed within this time, whatever it said of itself.
MAX_LEASE_SECONDS: Final = 3600
# On a SyncTarget: the duration of its heartbeat's Lease.
HEARTBEAT_LEASE_SECONDS: Final = "edge.kcp.io/heartbeat-lease-seconds"
# On a mailbox Workspace: the name of its SyncTarget.
SYNC_TARGET_NAME: Final = "edge.kcp.io/sync-target-name"

# -- placements ------------------------------------------------------------------------------

# What becomes of the states that edges report of a placed object: its source gets none, that of
# its only destination, or one made of those of all destinations.
ReportedState = Literal["None", "Singleton", "Aggregate"]
REPORTED_STATES: Final[tuple[ReportedState, ...]] = get_args(ReportedState)
SINGLETON: Final = "Singleton"
AGGREGATE: Final = "Aggregate"
# On a ReplicaSet, by the summarizer: it says of a Deployment beside it what its edges report.
REPORTED_REPLICAS: Final = "edge.kcp.io/reported-replicas"

# -- conditions ------------------------------------------------------------------------------

# Of SyncTargets, Locations and EdgePlacements: an edge waits for a person before it goes on.
HELD: Final = "Held"
# Of SyncTargets: the edge did not take some objects.
OBJECTS_REFUSED: Final = "ObjectsRefused"

# -- conditions of EdgePlacements ------------------------------------------------------------

# What the edge scheduler says of destinations, and the placement translator of names.
SCHEDULED: Final = "Scheduled"
CONFLICT_FREE: Final = "ConflictFree"
# What the summarizer says of all destinations together; the last is the conjunction.
DELIVERED: Final = "Delivered"
HEALTHY: Final = "Healthy"
READY: Final = "Ready"
# Why not: not everywhere yet, and somewhere not as it should be.
NOT_DELIVERED: Final = "NotDelivered"
UNHEALTHY: Final = "Unhealthy"
# Said by earlier versions of the translator; found in stored objects and dropped.
TRANSLATED: Final = "Translated"

# Why a destination is unknown.
LEASE_LAPSED: Final = "LeaseLapsed"
NEVER_HEARD_OF: Final = "NeverHeardOf"
# Reason of the Event that fewer destinations are unknown.
HEARD_AGAIN: Final = "HeardAgain"

# -- guards ----------------------------------------------------------------------------------

# On an EdgePlacement whose deletion would ask for a person: it waits for the edge scheduler.
GUARD_FINALIZER: Final = "edge.kcp.io/guard"
# Reason of the condition Held: a guard keeps what would be removed.
REMOVALS_HELD: Final = "RemovalsHeld"


def places_nothing(placement: Mapping[str, Any]) -> bool:
    """Tell whether an EdgePlacement is being deleted, and nobody holds that."""
    metadata = placement["metadata"]
    if not metadata.get("deletionTimestamp"):
        return False
    held = GUARD_FINALIZER in (metadata.get("finalizers") or ())
    return not held and not is_staged(placement)


# -- conditions of StatusQueries -------------------------------------------------------------

# Whether the question makes sense, whether everything it asks about was read, and whether the
# answer is whole.
VALID: Final = "Valid"
COMPLETE: Final = "Complete"
WITHIN_LIMITS: Final = "WithinLimits"
# Why an answer is not complete.
READING: Final = "Reading"
KIND_NOT_SERVED: Final = "KindNotServed"
KIND_GONE: Final = "KindGone"
WATCH_INTERRUPTED: Final = "WatchInterrupted"
NOT_KEPT: Final = "NotKept"

# -- slices ----------------------------------------------------------------------------------

# On every slice but the one that has the placement's own name.
SOURCE_PLACEMENT: Final = "edge.kcp.io/source-placement"


class SliceOwner(NamedTuple):
    """The EdgePlacement that slices belong to."""

    name: str
    uid: str

    def reference(self) -> dict[str, str]:
        """Return the owner reference that says so."""
        return {
            "apiVersion": API_VERSION,
            "kind": "EdgePlacement",
            "name": self.name,
            "uid": self.uid,
        }


def slice_owner(metadata: Mapping[str, Any]) -> SliceOwner | None:
    """Return the EdgePlacement that a slice's owner references name."""
    for reference in metadata.get("ownerReferences") or ():
        group = str(reference.get("apiVersion", "")).partition("/")[0]
        if reference.get("kind") == "EdgePlacement" and group == GROUP:
            return SliceOwner(reference["name"], reference["uid"])
    return None


def placement_of_slice(obj: Mapping[str, Any]) -> str:
    """Return the name of the EdgePlacement a slice belongs to, for whoever asks.

    Its owner's; else what its label says, which is how people write further slices by hand and
    how a restore without owner references brings them back; else its own name.
    """
    metadata = obj["metadata"]
    owner = slice_owner(metadata)
    if owner is not None:
        return owner.name
    return str((metadata.get("labels") or {}).get(SOURCE_PLACEMENT) or metadata["name"])


# On slices of a placement with a Rollout: the number that the next newcomer gets as its slot.
NEXT_SLOT: Final = "edge.kcp.io/next-slot"

# -- revisions -------------------------------------------------------------------------------

# On an object, by its owner, with the value "true": what changed it must not be taken back.
NO_ROLLBACK: Final = "edge.kcp.io/no-rollback"

# On a PlacementRevision, by a person, with the value "true": it is kept.
PIN: Final = "edge.kcp.io/pin"
# On a Rollout with manual cuts, by a person: any new value cuts a revision.
CUT: Final = "edge.kcp.io/cut"
# On a PlacementRevision, by the translator: of those of a placement, the one with the highest
# number here was found last to be what the workspace has.
CUT_SEQUENCE: Final = "edge.kcp.io/cut-sequence"
# On the SyncerConfig of a mailbox, by the translator: placements and the revision at which all of
# theirs is there, as in ``cluster/web=42``, separated by commas.
REVISIONS: Final = "edge.kcp.io/revisions"

# -- types of a mailbox ----------------------------------------------------------------------

# On the SyncerConfig of a mailbox for a moment, by the translator: the mailbox has got types. An
# edge may not watch what brings them there.
TYPES_CHANGED: Final = "edge.kcp.io/types-changed"

# -- history ---------------------------------------------------------------------------------

# On objects that decisions depend on, by the hub's admission and nobody else: the user of the last
# change of spec or labels, and the ID of that request in the audit log, as JSON. Never copied.
CHANGED_BY: Final = "edge.kcp.io/changed-by"
AUTHORED_KINDS: Final = frozenset(
    (
        EDGE_PLACEMENTS.group_resource,
        ROLLOUTS.group_resource,
        CUSTOMIZERS.group_resource,
        LOCATIONS.group_resource,
        SYNC_TARGETS.group_resource,
        GroupResource("", "namespaces"),
    )
)
# On DecisionRecords, a label: the controller whose chain they are in.
DECIDED_BY: Final = "edge.kcp.io/decided-by"
# On an EdgePlacement, by its owner: how long its DecisionRecords are kept, such as 90d; 0: none.
HISTORY_RETENTION: Final = "edge.kcp.io/history-retention"

# -- rollouts --------------------------------------------------------------------------------

# Keeps a Rollout that is deleted until every destination has what the workspace has; and an
# EdgePlacement that asks for it until its Rollout has taken away what was placed.
ROLLOUT_FINALIZER: Final = "edge.kcp.io/rollout"
# On an EdgePlacement, "true" by its owner: when it is deleted, everything goes wave by wave.
STAGED_REMOVAL: Final = "edge.kcp.io/staged-removal"


def wants_staged_removal(placement: Mapping[str, Any]) -> bool:
    """Tell whether an EdgePlacement asks to be taken away wave by wave."""
    return (placement["metadata"].get("annotations") or {}).get(STAGED_REMOVAL) == "true"


def is_staged(placement: Mapping[str, Any]) -> bool:
    """Tell whether an EdgePlacement is being deleted wave by wave now; guards come first."""
    metadata = placement["metadata"]
    finalizers = metadata.get("finalizers") or ()
    return (
        bool(metadata.get("deletionTimestamp"))
        and ROLLOUT_FINALIZER in finalizers
        and GUARD_FINALIZER not in finalizers
        and wants_staged_removal(placement)
    )


# On a Rollout, by people. Each names what it is about, so that it is met once: a wave to be passed
# at once (``42/early``), a revision to be given up, one to go on with although so many are bad
# (``42@3``), one to go back to while the workspace's is not newer than that (``40@42``).
PROMOTE: Final = "edge.kcp.io/promote"
ABORT: Final = "edge.kcp.io/abort"
ACCEPT: Final = "edge.kcp.io/accept"
UNDO: Final = "edge.kcp.io/undo"
# On a Rollout that is deleted: the revision of the workspace, which everybody gets at once.
RELEASE: Final = "edge.kcp.io/release"

# -- consent ---------------------------------------------------------------------------------

# LocationGrants of an inventory workspace say who may place what at its Locations. The controllers
# report in the workspace's one LocationConsent, and take confirmations from an annotation of it.
ConsentMode = Literal["Observe", "Enforce"]
OBSERVE: Final = "Observe"
ENFORCE: Final = "Enforce"
# On a LocationConsent: the ids that a person confirms, separated by commas. On an EdgePlacement and
# what else guards ask about: the name of what is held, or the token of a request.
CONFIRM: Final = "edge.kcp.io/confirm"
# Prefixes of ids, by which a controller knows its own: the edge scheduler those of destinations
# and of opening, the placement translator those of objects.
DESTINATION_ID: Final = "d-"
OBJECT_ID: Final = "o-"
OPENING_ID: Final = "open-"

# -- system objects --------------------------------------------------------------------------

# Whole groups that belong to the center; their objects, Customizers among them, never travel.
CENTRAL_GROUPS: Final = frozenset(
    (GROUP, "scheduling.kcp.io", "tenancy.kcp.io", "topology.kcp.io", "workload.kcp.io")
)
# Every mailbox has these from its type and from the mailbox controller; a second binding of the
# same export would only clash with the first.
_BOUND_EVERYWHERE = CENTRAL_GROUPS | {"apiresource.kcp.io"}
_TOKEN_TYPES = ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")
_RELEASE_TYPE = "helm.sh/release.v1"


def is_system_object(kind: GroupResource, obj: Mapping[str, Any]) -> bool:
    """Tell whether this object belongs to the cluster it is in, so that it is never sent on.

    Every cluster makes such objects for itself, or has them made: Helm keeps the history of a
    release where it installed it, and a report about edges is none of theirs.
    """
    if kind.group:
        if kind == ("apps", "replicasets"):
            return REPORTED_REPLICAS in (obj["metadata"].get("annotations") or {})
        return kind == API_BINDINGS.group_resource and _binds_everywhere(obj)
    name = obj["metadata"]["name"]
    match kind.resource:
        case "secrets":
            return obj.get("type") in _TOKEN_TYPES or is_release_record(kind, obj)
        case "configmaps":
            return bool(name == "kube-root-ca.crt")
        case "serviceaccounts":
            return bool(name == "default")
        case _:
            return False


def is_release_record(kind: GroupResource, obj: Mapping[str, Any]) -> bool:
    """Tell whether *obj* is one revision of a Helm release.

    These travelled once. A copy made then stays for as long as its source: an upgrade removes
    nothing from an edge, and Helm's own rotation lets the copies go one by one.
    """
    return kind == ("", "secrets") and obj.get("type") == _RELEASE_TYPE


def _binds_everywhere(binding: Mapping[str, Any]) -> bool:
    return binding_reference(binding)[1] in _BOUND_EVERYWHERE


def binding_reference(binding: Mapping[str, Any]) -> tuple[str, str]:
    """Return the path and name of the export that an APIBinding refers to."""
    reference = (binding.get("spec") or {}).get("reference") or {}
    export = reference.get("export") or {}
    return export.get("path", ""), export.get("name", "")
