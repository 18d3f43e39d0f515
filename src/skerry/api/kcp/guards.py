"""PlacementGuard: how much a change may do to placements before a person is asked.

A guard in the provider workspace is about all placements, one in a workload workspace about those
beside it. The edge scheduler and the placement translator hold what exceeds it, a hub of ours also
answers the request that would.
"""

from __future__ import annotations

from typing import Final

from skerry.api.kcp.building import (
    AGE,
    LABEL_KEY,
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

MEASURES: Final = ("DestinationsRemoved", "DestinationsAdded", "ObjectsRemoved", "ContentChanged")
ACTIONS: Final = ("Warn", "Confirm", "Deny")
AGAINST: Final = ("Delete", "Deselect", "Relabel")
STOPS: Final = ("Content", "Joining", "Leaving")
MODES: Final = ("Enforce", "Observe")
PROTECTED: Final = ("Namespace", "Location")
# Begins a time zone that each Location has in a label of its own.
LABEL_ZONE: Final = "label:"

# Whole seconds, minutes and hours, as Go writes them.
_DURATION = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$"
_FIELD = r"[-0-9A-Za-z*?,/]+"
_SCHEDULE = (
    r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|"
    rf"{_FIELD} {_FIELD} {_FIELD} {_FIELD} {_FIELD})$"
)
_ZONE = rf"^(label:{LABEL_KEY[1:-1]}|[A-Za-z][-+A-Za-z0-9_]*(/[A-Za-z0-9][-+A-Za-z0-9_]*)*)$"
_OBJECT_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"

# What one guard may list: far above need, and low enough that a decision asks all of it.
_MAX_BUDGETS = 20
_MAX_PROTECTED = 50
_MAX_NAMES = 200
_MAX_FREEZES = 20
_MAX_BYPASS = 50


def definitions(group: str, categories: tuple[str, ...]) -> list[Raw]:
    """Return the one kind."""
    return [
        definition(
            group,
            "PlacementGuard",
            "placementguards",
            {"spec": _spec(), "status": _status()},
            "PlacementGuard says how much may be removed, added or changed by accident, what is "
            "protected, and when nothing moves.",
            columns=[
                column("Mode", ".spec.mode"),
                column("Valid", condition_path("Valid")),
                column("Holding", condition_path("Holding")),
                column("Held", condition_path("Holding", "message"), priority=1),
                AGE,
            ],
            short_names=("pg",),
            categories=categories,
            required=("spec",),
        )
    ]


def _spec() -> Raw:
    return struct(
        {
            "mode": text(
                "Enforce holds and refuses; Observe says what it would have done, and changes "
                "nothing.",
                enum=list(MODES),
                default="Enforce",
            ),
            "placements": struct(
                {
                    "workspaces": label_selector(
                        "Only EdgePlacements of workspaces with these labels.", checked=True
                    ),
                    "selector": label_selector(
                        "Only EdgePlacements with these labels.", checked=True
                    ),
                },
                "EdgePlacements the guard is about; absent means all.",
            ),
            "budgets": listing(
                _budget(), "How much may happen; each must hold.", maxItems=_MAX_BUDGETS
            ),
            "protect": listing(_protection(), "What stays as it is.", maxItems=_MAX_PROTECTED),
            "freezes": listing(_freeze(), "When nothing moves.", maxItems=_MAX_FREEZES),
            "bypass": listing(
                _bypass(), "Who passes, and may loosen or delete the guard.", maxItems=_MAX_BYPASS
            ),
        },
        "What is guarded, and how.",
    )


def _duration(description: str) -> Raw:
    return text(description, minLength=2, maxLength=24, pattern=_DURATION)


def _budget() -> Raw:
    return struct(
        {
            "of": text(
                "What is counted: destinations of one placement that leave or join, objects that "
                "a placement no longer selects, destinations whose content changes at once.",
                enum=list(MEASURES),
            ),
            "max": whole("So many may.", minimum=0, maximum=1_000_000, format="int32"),
            "percent": whole(
                "This share may. Exceeded is what is above both.",
                minimum=0,
                maximum=100,
                format="int32",
            ),
            "window": _duration(
                "Within this time, 1s to 168h, in which a destination counts once; absent means "
                "in one decision."
            ),
            "action": text(
                "Warn tells. Confirm asks for a person. Deny refuses the request; what came "
                "without one is held as with Confirm.",
                enum=list(ACTIONS),
                default="Confirm",
            ),
        },
        required=("of",),
        anyOf=[{"required": ["max"]}, {"required": ["percent"]}],
    )


def _protection() -> Raw:
    return struct(
        {
            "kind": text("Kind of the objects.", enum=list(PROTECTED)),
            "names": listing(
                text(maxLength=253, pattern=_OBJECT_NAME), "By name.", maxItems=_MAX_NAMES
            ),
            "selector": label_selector("By their labels.", checked=True),
            "against": listing(
                text(enum=list(AGAINST)),
                "Delete; Deselect by a placement; Relabel so that a placement loses it.",
                minItems=1,
                maxItems=len(AGAINST),
            ),
        },
        "Objects whose loss asks for a person, however small.",
        required=("against", "kind"),
        anyOf=[{"required": ["names"]}, {"required": ["selector"]}],
    )


def _freeze() -> Raw:
    return struct(
        {
            "name": text("Named in messages.", maxLength=63, pattern=_OBJECT_NAME),
            "schedule": text(
                "When it begins: cron, in local wall time.", maxLength=256, pattern=_SCHEDULE
            ),
            "duration": _duration("How long it lasts, such as 60h."),
            "timeZone": text(
                "An IANA name, or label:KEY for the time zone that each Location has in that "
                "label. UTC where there is none.",
                maxLength=400,
                pattern=_ZONE,
            ),
            "locations": label_selector(
                "Locations where it freezes; absent means all.", checked=True
            ),
            "stops": listing(
                text(enum=list(STOPS)), "What does not begin.", minItems=1, maxItems=len(STOPS)
            ),
        },
        "A time in which nothing new begins.",
        required=("duration", "name", "schedule", "stops"),
    )


def _bypass() -> Raw:
    return struct(
        {
            "user": text("Name of a user.", minLength=1, maxLength=253),
            "group": text("Name of a group.", minLength=1, maxLength=253),
        },
        "A user or a group.",
        oneOf=[{"required": ["user"]}, {"required": ["group"]}],
    )


def _status() -> Raw:
    held = struct(
        {
            "placement": text("Workspace and name of the EdgePlacement."),
            "name": text("Confirms it when written into the annotation edge.kcp.io/confirm."),
            "removed": whole("Number of destinations, or objects, that wait.", format="int32"),
            "added": whole("Number of destinations that were added meanwhile.", format="int32"),
            "since": moment("Since when."),
            "why": text("A sentence for people."),
        },
        required=("name", "placement"),
    )
    return struct(
        {
            "observedGeneration": whole("Generation the rest speaks of.", format="int64"),
            "held": listing(held, "What waits for a person."),
            "heldOmitted": whole("Number of entries left out.", format="int32"),
            "conditions": conditions(severity=False),
        },
        "State of the guard, written by the edge scheduler.",
    )


def removals() -> Raw:
    """Return the schema of ``status.removals`` of an EdgePlacement: the guards' book."""
    within = "removed within the windows of guards."
    return struct(
        {
            "charges": listing(_charge("destinations"), f"Destinations {within}"),
            "held": _hold("destinations"),
            "objectCharges": listing(_charge("objects"), f"Objects {within}"),
            "heldObjects": _hold("objects"),
        },
        "What guards have let go, and what they hold.",
    )


def _charge(what: str) -> Raw:
    return struct(
        {
            "time": moment("When they were let go."),
            what: text("Which, eight bytes each, in base64."),
            "by": text("Who let them go beyond the budget: Confirm or Bypass; absent within it."),
        },
        required=(what, "time"),
    )


def _hold(what: str) -> Raw:
    return struct(
        {
            "name": text("Confirms it when written into the annotation edge.kcp.io/confirm."),
            "removed": whole(f"Number of {what} that wait.", format="int32"),
            "limit": whole(f"Number of {what} that would go unasked.", format="int32"),
            "of": whole(f"Number of {what} there were when it began.", format="int32"),
            "since": moment("Since when."),
            "why": text("A sentence for people."),
            "guards": listing(text(), "PlacementGuards that ask; none for the built-in floor."),
        },
        f"Removal of {what} that waits for a person.",
        required=("limit", "name", "removed", "since", "why"),
    )
