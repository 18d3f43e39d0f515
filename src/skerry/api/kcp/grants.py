"""LocationGrant and LocationConsent: whom an inventory workspace lets in, and what came of that.

The owner of an inventory workspace writes LocationGrants. The edge controllers answer with one
LocationConsent per inventory workspace, which also remembers that the workspace was enforced.
"""

from __future__ import annotations

from skerry.api.kcp.building import (
    AGE,
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
    whole,
)

MODES = ("Observe", "Enforce")
SCOPES = ("Namespaced", "Cluster", "*")

# A path as people write it: from root, or from a user's home workspace.
WORKSPACE_PATH = (
    r"^(root|user:[A-Za-z0-9]([-A-Za-z0-9_.@]*[A-Za-z0-9])?)(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
)
_OBJECT_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
# A group or resource by name, or the asterisk for all of them.
_API_GROUP = r"^(\*|([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?)$"
_RESOURCE = r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$"

# What one grant may list. Far above any inventory's need, and low enough that evaluating a grant
# stays a matter of milliseconds.
_MAX_WORKSPACES = 1000
_MAX_PARENTS = 100
_MAX_LOCATIONS = 1000
_MAX_RULES = 100
_MAX_KINDS = 200


def definitions(group: str, categories: tuple[str, ...]) -> list[Raw]:
    """Return both kinds."""
    return [_location_grant(group, categories), _location_consent(group, categories)]


def _path(description: str) -> Raw:
    return text(description, maxLength=500, pattern=WORKSPACE_PATH)


def _location_grant(group: str, categories: tuple[str, ...]) -> Raw:
    status = struct(
        {
            "observedGeneration": whole("Generation that the status describes.", format="int64"),
            "locations": whole("Number of Locations selected.", format="int32"),
            "workspaces": whole(
                "Number of workspaces with EdgePlacements that the grant names.", format="int32"
            ),
            "conditions": conditions(severity=False),
        },
        "State of the grant, written by the edge scheduler.",
    )
    return definition(
        group,
        "LocationGrant",
        "locationgrants",
        {"spec": _grant_spec(), "status": status},
        "LocationGrant lets workspaces place objects at Locations of the grant's own workspace. "
        "A workspace without grants is open to every EdgePlacement.",
        columns=[
            column("Mode", ".spec.mode"),
            column("Locations", ".status.locations", "integer"),
            column("Workspaces", ".status.workspaces", "integer"),
            column("Enforced", condition_path("Enforced")),
            AGE,
        ],
        short_names=("lgr",),
        categories=categories,
        required=("spec",),
    )


def _grant_spec() -> Raw:
    rule = struct(
        {
            "apiGroups": _kinds("API groups; the empty string is the core group.", _API_GROUP),
            "resources": _kinds("Resources, in lower-case plural.", _RESOURCE),
            "scope": text(
                "Namespaced admits namespaced objects only, Cluster cluster-scoped objects only, "
                "* both.",
                enum=list(SCOPES),
                default="Namespaced",
            ),
        },
        "Kinds of objects, as in a rule of a Role. * stands for all.",
        required=("apiGroups", "resources"),
    )
    return struct(
        {
            "mode": text(
                "Observe reports what would be refused. Enforce admits only what an enforcing "
                "grant of the workspace admits, and holds the removal of what runs already until "
                "it is confirmed.",
                enum=list(MODES),
                default="Observe",
            ),
            "workspaces": _workspaces(),
            "locations": struct(
                {
                    "names": listing(
                        text(maxLength=253, pattern=_OBJECT_NAME),
                        "Names of Locations.",
                        maxItems=_MAX_LOCATIONS,
                    ),
                    "selector": label_selector(
                        "Selects Locations by their labels; the empty selector selects all, an "
                        "absent one none.",
                        checked=True,
                    ),
                },
                "Locations of this workspace at which objects may be placed: those named and "
                "those selected.",
            ),
            "rules": listing(rule, "Objects that may be placed.", minItems=1, maxItems=_MAX_RULES),
        },
        "Who may place what at which Locations.",
        required=("locations", "rules", "workspaces"),
    )


def _workspaces() -> Raw:
    children = struct(
        {
            "path": _path("Path of the parent workspace."),
            "selector": label_selector(
                "Selects children by the labels of their Workspace objects in the parent.",
                checked=True,
            ),
        },
        "Direct children of a workspace. Whoever may write Workspace objects in the parent decides "
        "their labels, so name a parent whose administrators you trust.",
        required=("path", "selector"),
    )
    return struct(
        {
            "paths": listing(
                _path("Path of a workspace."),
                "Workspaces by path, such as root:shop.",
                maxItems=_MAX_WORKSPACES,
            ),
            "childrenOf": listing(
                children, "Workspaces by their parent and labels.", maxItems=_MAX_PARENTS
            ),
        },
        "Workspaces whose EdgePlacements are admitted: those named and those selected.",
    )


def _kinds(description: str, pattern: str) -> Raw:
    return listing(
        text(maxLength=253, pattern=pattern), description, minItems=1, maxItems=_MAX_KINDS
    )


def _location_consent(group: str, categories: tuple[str, ...]) -> Raw:
    identified = {"id": text("ID that confirms the removal when written into the annotation.")}
    destinations = {
        "workspace": text("Path of the workspace that places."),
        "placements": whole("Number of its EdgePlacements concerned.", format="int32"),
        "locations": whole("Number of Locations concerned.", format="int32"),
        "locationNames": listing(text(), "The first of those Locations."),
    }
    objects = {
        "workspace": text("Path of the workspace that places."),
        "objects": whole("Number of objects concerned, over all destinations.", format="int32"),
        "resources": listing(text(), "Kinds of the objects."),
    }
    confirmation = struct(
        {
            "id": text("ID that was confirmed."),
            "time": moment("When the confirmation was accepted."),
            "action": text("Remove or Open.", enum=["Remove", "Open"]),
            "workspace": text("Path of the workspace whose objects were released."),
            "count": whole("Number of destinations or objects released.", format="int32"),
        },
        required=("action", "id", "time"),
    )
    return definition(
        group,
        "LocationConsent",
        "locationconsents",
        {
            "mode": text(
                "Mode of the workspace. Enforce stays, whatever becomes of the grants, until "
                "opening the workspace is confirmed.",
                enum=list(MODES),
            ),
            "grants": whole("Number of LocationGrants.", format="int32"),
            "enforcingGrants": whole("Number of LocationGrants that enforce.", format="int32"),
            "held": whole("Number of entries that wait for confirmation.", format="int32"),
            "opening": struct(
                identified,
                "Present while no grant enforces any more and opening is not confirmed.",
                required=("id",),
            ),
            "destinations": _entries(destinations, "Destinations of whole EdgePlacements."),
            "objects": _entries(objects, "Objects of kinds that are not granted."),
            "confirmations": listing(confirmation, "The last confirmations, newest first."),
        },
        "LocationConsent reports what the LocationGrants of its workspace refuse and hold, and "
        "takes confirmations in the annotation edge.kcp.io/confirm. There is one, named default.",
        status=False,
        columns=[
            column("Mode", ".mode"),
            column("Grants", ".grants", "integer"),
            column("Enforcing", ".enforcingGrants", "integer"),
            column("Held", ".held", "integer"),
            AGE,
        ],
        short_names=("lco",),
        categories=categories,
        required=("mode",),
    )


def _entries(fields: dict[str, Raw], description: str) -> Raw:
    held = {"id": text("ID that confirms the removal when written into the annotation."), **fields}
    return struct(
        {
            "refused": listing(
                struct(fields, required=("workspace",)),
                "Not admitted; with mode Observe, what would not be.",
            ),
            "refusedOmitted": whole("Number of entries left out.", format="int32"),
            "held": listing(
                struct(held, required=("id", "workspace")),
                "Placed already, and kept until its removal is confirmed.",
            ),
            "heldOmitted": whole("Number of entries left out.", format="int32"),
        },
        description,
    )
