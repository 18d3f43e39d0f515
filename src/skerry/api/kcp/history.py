"""DecisionRecord: what was decided about a placement, when, why, and who caused it.

A record is a batch: everything that one decision did, not a line per destination. Records are
written by the edge controllers in the workspace of the EdgePlacement, before what they explain, and
never change. They are not owned by the EdgePlacement: its history outlives it.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from skerry.api.kcp.building import (
    Raw,
    column,
    definition,
    listing,
    moment,
    struct,
    text,
    truth,
    whole,
)

Change = Literal[
    "Joined",
    "Left",
    "Revised",
    "Withheld",
    "Released",
    "Held",
    "Delivered",
    "Judged",
    "Checkpoint",
]
CHANGES: Final[tuple[Change, ...]] = get_args(Change)

# Destinations that one record may name.
MAX_NAMED: Final = 500
# Slots are given one after another and never again: no placement comes near this.
MAX_SLOT: Final = (1 << 31) - 1
# Causes that a record names; the others are counted.
MAX_CAUSES: Final = 20
# Characters of what a record keeps compressed: well below what stores take as one object.
MAX_PACKED: Final = 1_000_000
_REQUIRED: Final = ("by", "change", "placement", "time")
_MAX_TEXT: Final = 1024
_MAX_NAME: Final = 253
_DIGEST: Final = r"^[0-9a-f]{32}$"
_BASE64: Final = r"^[A-Za-z0-9+/]*={0,2}$"


def definitions(group: str, categories: tuple[str, ...]) -> list[Raw]:
    """Return the kind."""
    found = definition(
        group,
        "DecisionRecord",
        "decisionrecords",
        _fields(),
        "DecisionRecord is one decision about an EdgePlacement: which destinations it was about, "
        "why it was taken and who caused it. Records are written by the edge controllers and never "
        "change.",
        status=False,
        columns=[
            column("Time", ".time"),
            column("Placement", ".placement.name"),
            column("Change", ".change"),
            column("Count", ".destinations.count", "integer"),
            column("From", ".from", "integer", priority=1),
            column("To", ".to", "integer", priority=1),
            column("Why", ".reason.text"),
            column("Cause", ".cause.name"),
            column("User", ".cause.user"),
        ],
        short_names=("dr",),
        categories=categories,
        required=_REQUIRED,
    )
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = [
        {"rule": _unchanged(), "message": "a DecisionRecord never changes"}
    ]
    return [found]


def _unchanged() -> str:
    """Return the rule that no field changes; metadata may, or finalizers could not be removed."""
    return " && ".join(
        f"self.{name} == oldSelf.{name}"
        if name in _REQUIRED
        else f"has(self.{name}) == has(oldSelf.{name}) && "
        f"(!has(self.{name}) || self.{name} == oldSelf.{name})"
        for name in _fields()
    )


def _fields() -> dict[str, Raw]:
    return {**_decided(), **_caused(), **_chained()}


def _decided() -> dict[str, Raw]:
    return {
        "time": moment("When it was decided, by the clock of the hub's controllers."),
        "placement": struct(
            {
                "name": text("Name of the EdgePlacement.", maxLength=_MAX_NAME),
                "uid": text("UID of the EdgePlacement.", maxLength=64),
                "generation": whole("Generation that the decision is about.", format="int64"),
            },
            "The EdgePlacement in the workspace of the record.",
            required=("name", "uid"),
        ),
        "change": text("What happened to the destinations.", enum=list(CHANGES)),
        "from": whole("Revision that the destinations had before.", format="int64", minimum=0),
        "to": whole("Revision that the destinations have from here on.", format="int64", minimum=0),
        "object": _object(),
        "destinations": _destinations(),
    }


def _caused() -> dict[str, Raw]:
    return {
        "reason": struct(
            {
                "code": text("Reason, in one CamelCase word.", maxLength=64),
                "text": text("Human-readable message.", maxLength=_MAX_TEXT),
            },
            "Why, as the controller found it then.",
            required=("code",),
        ),
        "cause": _cause("The change that led to the decision; of several the newest."),
        "otherCauses": listing(_cause(), "Further causes.", maxItems=MAX_CAUSES - 1),
        "causeCount": whole("Number of causes, if more than are listed.", format="int32"),
        "by": struct(
            {
                "controller": text("Name of the controller.", maxLength=64),
                "version": text("Version of the controller.", maxLength=64),
            },
            "Controller that decided.",
            required=("controller",),
        ),
    }


def _chained() -> dict[str, Raw]:
    return {
        "page": struct(
            {
                "number": whole("Number of this record, from 1.", format="int32", minimum=1),
                "of": whole("Number of records.", format="int32", minimum=1),
            },
            "Present where one decision takes several records.",
            required=("number", "of"),
        ),
        "previous": text(
            "Digest of the record before, of the same EdgePlacement and controller.",
            maxLength=32,
            pattern=_DIGEST,
        ),
        "store": text(
            "Identity of the hub's store, where it is known; a restored store has another.",
            maxLength=64,
        ),
        "restored": truth("The first record after a store was restored from a backup."),
        "chains": listing(
            struct(
                {
                    "controller": text(maxLength=64),
                    "digest": text(maxLength=32, pattern=_DIGEST),
                },
                required=("controller", "digest"),
            ),
            "Of a Checkpoint: the last record of each controller that it stands for.",
            maxItems=16,
        ),
    }


def _object() -> Raw:
    return struct(
        {
            "group": text("API group; empty for the core group.", maxLength=_MAX_NAME),
            "resource": text("Resource, in lower-case plural.", maxLength=_MAX_NAME),
            "namespace": text("Namespace of the object.", maxLength=_MAX_NAME),
            "name": text("Name of the object.", maxLength=_MAX_NAME),
            "from": text("Digest of the content that was sent before.", maxLength=64),
            "to": text("Digest of the content that is sent from here on.", maxLength=64),
        },
        "Object that the decision is about, if it is about one.",
        required=("name", "resource"),
    )


def _destinations() -> Raw:
    named = struct(
        {
            "slot": whole(
                "Number of the destination in the placement.",
                format="int64",
                minimum=0,
                maximum=MAX_SLOT,
            ),
            "cluster": text("Logical cluster of Location and SyncTarget.", maxLength=_MAX_NAME),
            "location": text("Name of the Location.", maxLength=_MAX_NAME),
            "syncTarget": text("Name of the SyncTarget.", maxLength=_MAX_NAME),
            "uid": text("UID of the SyncTarget.", maxLength=64),
        },
        required=("cluster", "location", "syncTarget", "uid"),
    )
    packed = {"maxLength": MAX_PACKED, "pattern": _BASE64}
    return struct(
        {
            "count": whole("Number of destinations.", format="int32", minimum=0),
            "all": truth("Whether these were all destinations."),
            "slots": text("Compressed bitmap of their slots, where they have some.", **packed),
            "keys": text("Compressed digests of those without slots.", **packed),
            "named": listing(
                named, "Destinations one by one, if they are few.", maxItems=MAX_NAMED
            ),
            "state": text(
                "Of a Checkpoint all destinations, of a Joined the newcomers if they are many, "
                "each with its slot and revision: a JSON list, compressed by zlib, in base64.",
                **packed,
            ),
        },
        "Destinations that the decision is about.",
        required=("count",),
    )


def _cause(description: str = "") -> Raw:
    return struct(
        {
            "kind": text("Kind of the object that changed.", maxLength=64),
            "name": text("Name of the object that changed.", maxLength=_MAX_NAME),
            "namespace": text("Namespace of the object that changed.", maxLength=_MAX_NAME),
            "cluster": text("Logical cluster of the object that changed.", maxLength=_MAX_NAME),
            "resourceVersion": text(
                "Resource version of the object after the change.", maxLength=64
            ),
            "change": text("Human-readable description of the change.", maxLength=_MAX_TEXT),
            "user": text(
                "Who changed it, as the hub's admission recorded; absent where it did not.",
                maxLength=_MAX_TEXT,
            ),
            "auditID": text("ID of the request in the hub's audit log.", maxLength=64),
            "manager": text(
                "Field manager of the last change, where no user is known.", maxLength=128
            ),
        },
        description,
        required=("kind", "name"),
    )
