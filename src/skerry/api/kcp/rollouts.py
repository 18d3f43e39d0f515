"""Rollout and RolloutApproval: how a change of a placement's content reaches its destinations.

The owner of an EdgePlacement writes a Rollout of the same name. The edge scheduler answers in its
status, and asks for approvals with RolloutApprovals; whoever may write ``rolloutapprovals/status``
answers those. The summarizer writes ``status.verdicts``, and nothing else of a Rollout.
"""

from __future__ import annotations

from typing import Literal, get_args

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
    truth,
    whole,
)

# As Go writes durations, whole numbers only: 90s, 1h30m.
DURATION = r"^([0-9]{1,9}(ms|s|m|h)){1,4}$"
# From 1% to 100%.
PERCENT = r"^([1-9][0-9]?|100)%$"
_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

Phase = Literal[
    "Settling",
    "Progressing",
    "Soaking",
    "Awaiting",
    "Paused",
    "RollingBack",
    "RolledBack",
    "Completed",
]
SETTLE_MODES = ("Quiet", "Manual")
OFFLINE_POLICIES = ("Defer", "Assign", "Wait")
FAILURE_POLICIES = ("Rollback", "Pause", "Continue")
SUPERSEDE_POLICIES = ("Replace", "Queue")

# More than anybody watches over; each costs a pass over the destinations when it opens.
MAX_WAVES = 32
_MAX_KEYS = 4
_MAX_CHECKS = 16
_MAX_EXPRESSION = 4096


def definitions(group: str, categories: tuple[str, ...]) -> list[Raw]:
    """Return both kinds."""
    return [_rollout(group, categories), _rollout_approval(group, categories)]


def _duration(description: str, default: str | None = None) -> Raw:
    more = {} if default is None else {"default": default}
    return text(description, pattern=DURATION, maxLength=40, **more)


def _portion(description: str, default: int | str | None = None) -> Raw:
    """A number of destinations, or a percentage of them."""
    schema: Raw = {
        "description": description,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "minimum": 1,
        "pattern": PERCENT,
    }
    return schema if default is None else {**schema, "default": default}


def _expression(description: str) -> Raw:
    return text(description, minLength=1, maxLength=_MAX_EXPRESSION)


def _waves() -> Raw:
    wave = struct(
        {
            "name": text("Name of the wave.", maxLength=63, pattern=_NAME),
            "selector": label_selector(
                "Destinations by the labels of their Locations; absent means all.", checked=True
            ),
            "until": _portion(
                "How many of the selected destinations have the target revision when the wave is "
                "full: a number, or a percentage. Absent means all."
            ),
            "spreadBy": listing(
                text(maxLength=317, pattern=LABEL_KEY),
                "Labels of Locations over whose values the wave is spread.",
                maxItems=_MAX_KEYS,
            ),
            "soak": _duration("How long everything must stay Good once the wave is full.", "0s"),
            "approval": truth("Whether the next wave needs an approval.", default=False),
        },
        required=("name",),
    )
    return listing(
        wave,
        "Cumulative: each wave adds to those before. All other destinations form a last wave.",
        maxItems=MAX_WAVES,
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


def _judge() -> Raw:
    check = struct(
        {
            "query": text("Name of a StatusQuery of the workspace.", maxLength=253, minLength=1),
            "holds": _expression(
                "CEL expression over `rows`, the rows of the query; must be true."
            ),
        },
        required=("holds", "query"),
    )
    return struct(
        {
            "minReady": _duration("How long a destination is healthy before it is Good.", "30s"),
            "deadline": _duration(
                "Time after which a destination that is not Good is Bad, counted from its "
                "assignment and only while its edge is heard of.",
                "15m",
            ),
            "failures": struct(
                {
                    "max": _portion("Portion of the wave's destinations that may be Bad."),
                    "above": whole("Number that may be Bad.", format="int32", minimum=0),
                },
                "The rollout fails when more are Bad than both allow.",
            ),
            "evidence": whole(
                "Number of destinations that must be Good before a wave passes.",
                format="int32",
                minimum=1,
                default=1,
            ),
            "failWhen": _expression(
                "CEL expression over `reports` of one destination; true means that it is Bad."
            ),
            "checks": listing(check, "Queries that must hold.", maxItems=_MAX_CHECKS),
            "external": listing(
                text(maxLength=316, minLength=1),
                "Types of conditions of this object that others write, and that must be True.",
                maxItems=_MAX_CHECKS,
            ),
        },
        "How destinations are judged.",
        default={},
    )


def _pacing(description: str, default: int) -> Raw:
    return struct({"concurrency": _portion("Maximum at once.", default)}, description, default={})


def _settle() -> Raw:
    """When changes become a revision."""
    return struct(
        {
            "mode": text(
                "Quiet creates a revision when changes have stopped; Manual when the "
                "annotation edge.kcp.io/cut is set to another name.",
                enum=list(SETTLE_MODES),
                default="Quiet",
            ),
            "quiet": _duration("How long nothing must have changed.", "10s"),
            "longest": _duration("Maximum time that ongoing changes delay a revision.", "2m"),
        },
        "When changes become a revision.",
        default={},
    )


def _offline() -> Raw:
    """What becomes of silent edges."""
    return struct(
        {
            "after": _duration("How long an edge is not heard of before it is Absent.", "5m"),
            "policy": text(
                "Defer assigns when the edge is back; Assign does not wait for that; Wait "
                "holds the wave.",
                enum=list(OFFLINE_POLICIES),
                default="Defer",
            ),
        },
        "How edges that are not heard of are treated.",
        default={},
    )


def _pace() -> Raw:
    """Pace of a wave."""
    return struct(
        {
            "concurrency": _portion("Maximum destinations in flight.", "10%"),
            "maxUnavailable": _portion("Maximum destinations that may be unhealthy.", "10%"),
            "per": listing(
                text(maxLength=317, pattern=LABEL_KEY),
                "Labels of Locations; both limits also apply to each of their values.",
                maxItems=_MAX_KEYS,
            ),
        },
        "Pace of a wave.",
        default={},
    )


def _rollout_spec() -> Raw:
    return struct(
        {
            "settle": _settle(),
            "waves": _waves(),
            "pace": _pace(),
            "judge": _judge(),
            "offline": _offline(),
            "joining": _pacing("Pace of new destinations, which get the stable revision.", 50),
            "leaving": _pacing("Pace of destinations that are no longer selected.", 50),
            "onFailure": text(
                "Action taken when the rollout fails.",
                enum=list(FAILURE_POLICIES),
                default="Rollback",
            ),
            "supersede": text(
                "Whether a newer revision replaces one in progress, or waits.",
                enum=list(SUPERSEDE_POLICIES),
                default="Replace",
            ),
            "paused": truth("Whether assignment is paused; verdicts continue.", default=False),
            "force": struct(
                {
                    "revision": whole("Number of a revision.", format="int32", minimum=1),
                    "reason": text("Why, for the record.", maxLength=1024, minLength=1),
                },
                "Revision that every destination gets now, bypassing every gate.",
                required=("reason", "revision"),
            ),
        },
        "How changes are rolled out to the destinations.",
    )


def _bitmap(description: str) -> Raw:
    return text(f"{description} Slots as a compressed bitmap in base64.")


def _verdicts() -> Raw:
    """What the summarizer thinks of slots."""
    return struct(
        {
            "attempt": whole("Attempt that the verdicts are for."),
            "good": _bitmap("Good at the target."),
            "bad": _bitmap("Bad at the target."),
            "excused": _bitmap("Bad at the target, and unhealthy before."),
            "settled": _bitmap("Destinations whose mailbox matches their slice."),
            "delivered": _bitmap("Destinations whose edge has applied the target."),
            "joined": _bitmap("New destinations that are healthy at the stable revision."),
            "unfit": _bitmap("New destinations that are not."),
            "left": _bitmap("Departing destinations with nothing left in their mailbox."),
            "absent": _bitmap("Destinations that are not heard of."),
            "unavailable": _bitmap("Unhealthy now, whatever the revision."),
            "errors": whole("Number of expressions that failed.", format="int32"),
            "failures": listing(
                struct(
                    {
                        "slot": whole("Slot of the destination.", format="int32"),
                        "location": text("Name of its Location."),
                        "reason": text("Reason, in one CamelCase word."),
                        "message": text("Human-readable message."),
                    },
                    required=("reason", "slot"),
                ),
                "The first destinations that are Bad.",
            ),
        },
        "Written by the summarizer.",
    )


def _failure() -> Raw:
    """Why a revision failed."""
    return struct(
        {
            "revision": whole("Revision that failed.", format="int32"),
            "reason": text("Reason, in one CamelCase word."),
            "slots": listing(whole(format="int32"), "The first destinations that are Bad."),
            "message": text("Human-readable message."),
            "undo": text("Request to go back that it was rolled out for, if there was one."),
        },
        "The last failure.",
        required=("reason", "revision"),
    )


def _wave_status() -> Raw:
    """The wave in progress."""
    return struct(
        {
            "name": text("Name of the wave; empty for the last one."),
            "number": whole("Number of the wave, from 1.", format="int32"),
            "opened": moment("When the wave opened."),
            "quietSince": moment("Since when the wave is full and Good."),
            "soakedSeconds": whole(
                "Proven part of the soak, which does not depend on clocks.", format="int32"
            ),
            "slots": _bitmap("Destinations in the waves up to this one."),
            "badSeen": whole(
                "Number of destinations that were Bad when it was quiet.", format="int32"
            ),
        },
        "The wave in progress.",
    )


def _rollout_status() -> Raw:
    count = whole(format="int32")
    names = ("destinations", "target", "good", "bad", "excused", "waiting", "absent", "unavailable")
    batch = struct(
        {
            "since": moment("When the deadline starts to count."),
            "slots": _bitmap("Destinations of the batch."),
        },
        required=("since", "slots"),
    )
    return struct(
        {
            "observedGeneration": whole("Generation that the status describes.", format="int64"),
            "phase": text("Phase of the rollout.", enum=list(get_args(Phase))),
            "attempt": whole("Number of turns: targets that started, and returns."),
            "target": whole("Number of the revision that is rolled out.", format="int32"),
            "digest": text("Digest of that revision."),
            "stable": whole("Number of the last revision that is Good.", format="int32"),
            "wave": _wave_status(),
            "counts": struct(dict.fromkeys(names, count), "Destinations by verdict."),
            "progress": text("Destinations at the target, of all, for display."),
            "inFlight": listing(batch, "Destinations without a verdict."),
            "unwellBefore": _bitmap("Destinations that were unhealthy when they were assigned."),
            "joining": _bitmap("New destinations at the stable revision without a verdict."),
            "unproven": truth(
                "Whether no destination is known to be healthy at the first revision yet."
            ),
            "departing": _bitmap(
                "Destinations that are no longer selected, until nothing is left there."
            ),
            "verdicts": _verdicts(),
            "failure": _failure(),
            # Others write theirs beside ours.
            "conditions": {
                **conditions(severity=False),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
        "State of the rollout. The edge scheduler writes all but the verdicts.",
    )


def _rollout(group: str, categories: tuple[str, ...]) -> Raw:
    return definition(
        group,
        "Rollout",
        "rollouts",
        {"spec": _rollout_spec(), "status": _rollout_status()},
        "Rollout sends changes of the EdgePlacement of the same name to its destinations in "
        "waves, judges them, and rolls them back when they fail.",
        columns=[
            column("Phase", ".status.phase"),
            column("Target", ".status.target", "integer"),
            column("Stable", ".status.stable", "integer"),
            column("Wave", ".status.wave.name"),
            column("Progress", ".status.progress", priority=1),
            column("Good", ".status.counts.good", "integer"),
            column("Bad", ".status.counts.bad", "integer"),
            column("Waiting", ".status.counts.waiting", "integer"),
            column("Ready", condition_path("Ready")),
            column("Message", condition_path("Ready", "message"), priority=1),
            AGE,
        ],
        short_names=("ro",),
        categories=categories,
        required=("spec",),
    )


def _rollout_approval(group: str, categories: tuple[str, ...]) -> Raw:
    spec = struct(
        {
            "rollout": text("Name of the Rollout.", minLength=1),
            "revision": whole("Number of the revision.", format="int32", minimum=1),
            "digest": text("Digest of the revision: the approval is for this content."),
            "wave": text("Name of the wave that has passed.", minLength=1),
            "asked": text("Human-readable question."),
        },
        "Request for an approval.",
        required=("digest", "revision", "rollout", "wave"),
        **{
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "what is asked cannot be changed"}
            ]
        },
    )
    status = struct(
        {
            "approved": truth("Whether it is approved."),
            "by": text("Who approved, as they state it; the audit log has the authenticated user."),
            "time": moment("When it was approved."),
            "message": text("Why, for the record.", maxLength=1024),
        },
        "Answer to the request. Whoever may write this subresource may approve.",
    )
    return definition(
        group,
        "RolloutApproval",
        "rolloutapprovals",
        {"spec": spec, "status": status},
        "RolloutApproval asks whether a rollout may go on after a wave.",
        columns=[
            column("Rollout", ".spec.rollout"),
            column("Revision", ".spec.revision", "integer"),
            column("Wave", ".spec.wave"),
            column("Approved", ".status.approved", "boolean"),
            column("By", ".status.by"),
            AGE,
        ],
        short_names=("roa",),
        categories=categories,
        required=("spec",),
    )
