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
            "PlacementGuard limits how much may be removed, added or changed at once, protects "
            "objects, and defines when no change starts.",
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
                "Enforce holds and refuses changes; Observe reports what Enforce would have done, "
                "and changes nothing.",
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
                "EdgePlacements that the guard applies to; absent means all.",
            ),
            "budgets": listing(
                _budget(), "Limits on changes; all of them apply.", maxItems=_MAX_BUDGETS
            ),
            "protect": listing(
                _protection(), "Objects that are protected.", maxItems=_MAX_PROTECTED
            ),
            "freezes": listing(
                _freeze(), "Times in which no change starts.", maxItems=_MAX_FREEZES
            ),
            "bypass": listing(
                _bypass(),
                "Who bypasses the guard, and may loosen or delete it.",
                maxItems=_MAX_BYPASS,
            ),
        },
        "Limits, protection and freezes of placements.",
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
            "max": whole(
                "Maximum number of changes.", minimum=0, maximum=1_000_000, format="int32"
            ),
            "percent": whole(
                "Maximum share, in percent. With both limits the higher applies.",
                minimum=0,
                maximum=100,
                format="int32",
            ),
            "window": _duration(
                "Time over which changes are counted, 1s to 168h; a destination counts once. "
                "Absent means one decision."
            ),
            "action": text(
                "Warn returns a warning. Confirm holds the change until a person confirms it. Deny "
                "refuses the request; a change without a request is held as with Confirm.",
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
                text(maxLength=253, pattern=_OBJECT_NAME),
                "Names of the objects.",
                maxItems=_MAX_NAMES,
            ),
            "selector": label_selector("Selects objects by their labels.", checked=True),
            "against": listing(
                text(enum=list(AGAINST)),
                "Delete; Deselect by a placement; Relabel so that it is no longer selected.",
                minItems=1,
                maxItems=len(AGAINST),
            ),
        },
        "Objects whose loss needs a confirmation, however small.",
        required=("against", "kind"),
        anyOf=[{"required": ["names"]}, {"required": ["selector"]}],
    )


def _freeze() -> Raw:
    return struct(
        {
            "name": text(
                "Name of the freeze, used in messages.", maxLength=63, pattern=_OBJECT_NAME
            ),
            "schedule": text(
                "Start of the freeze: a cron schedule in local wall time.",
                maxLength=256,
                pattern=_SCHEDULE,
            ),
            "duration": _duration("Duration of the freeze, such as 60h."),
            "timeZone": text(
                "An IANA name, or label:KEY for the time zone that each Location has in that "
                "label. UTC where there is none.",
                maxLength=400,
                pattern=_ZONE,
            ),
            "locations": label_selector(
                "Locations that are frozen; absent means all.", checked=True
            ),
            "stops": listing(
                text(enum=list(STOPS)),
                "Changes that do not start.",
                minItems=1,
                maxItems=len(STOPS),
            ),
        },
        "A time in which no change starts.",
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
            "name": text(
                "ID that confirms the change when written into the annotation edge.kcp.io/confirm."
            ),
            "removed": whole("Number of destinations or objects held.", format="int32"),
            "added": whole("Number of destinations added since the hold began.", format="int32"),
            "since": moment("When the hold began."),
            "why": text("Human-readable message."),
        },
        required=("name", "placement"),
    )
    return struct(
        {
            "observedGeneration": whole("Generation that the status describes.", format="int64"),
            "held": listing(held, "Changes that wait for confirmation."),
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
        "Removals that guards admitted, and removals that they hold.",
    )


def _charge(what: str) -> Raw:
    return struct(
        {
            "time": moment("When the removal was admitted."),
            what: text(f"{what.capitalize()}, as eight-byte keys in base64."),
            "by": text(
                "What admitted the removal beyond the budget: Confirm or Bypass; absent within it."
            ),
        },
        required=(what, "time"),
    )


def _hold(what: str) -> Raw:
    return struct(
        {
            "name": text(
                "ID that confirms the change when written into the annotation edge.kcp.io/confirm."
            ),
            "removed": whole(f"Number of {what} held.", format="int32"),
            "limit": whole(
                f"Number of {what} that may be removed without confirmation.", format="int32"
            ),
            "of": whole(f"Number of {what} when the hold began.", format="int32"),
            "since": moment("When the hold began."),
            "why": text("Human-readable message."),
            "guards": listing(text(), "PlacementGuards that hold it; none for the built-in floor."),
        },
        f"Removal of {what} that waits for confirmation.",
        required=("limit", "name", "removed", "since", "why"),
    )
