"""What is to be thought of one destination at the target revision. The hub's clock alone counts.

| verdict | when |
|---|---|
| Good | its mailbox has the target; everything was delivered and is well, for ``minReady`` |
| Bad | a refusal that the edge will repeat, ``failWhen``, or not Good at the deadline |
| Excused | Bad, and unwell before it was assigned |
| Absent | its edge is not heard of for ``offline.after`` |
| Waiting | else |

Good stays: an edge that is updating itself later is no loss. One that is *unwell* later, for as
long as ``minReady`` and some seconds at least, is Bad: otherwise to soak would mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Verdict = Literal["Waiting", "Good", "Bad", "Excused"]
WAITING: Final = "Waiting"
GOOD: Final = "Good"
BAD: Final = "Bad"
EXCUSED: Final = "Excused"

# What the edge will answer to the same object again, whoever asks.
LASTING_REFUSALS: Final = frozenset(("Rejected", "ImmutableField", "NotOurs", "EdgeForbidden"))
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
FAIL_WHEN: Final = "FailWhen"
UNWELL: Final = "Unhealthy"
# A Pod that is replaced is unwell for some seconds; that alone is no reason to return.
_MIN_UNWELL_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a destination now.

    ``silent_since`` is when its edge was last heard of, in RFC 3339, where that is too long ago to
    believe what it reported. ``translated``: its mailbox has the revision that its slice says.
    ``delivered``: everything of it was applied at the edge.
    ``well``: everything was delivered and nothing is unhealthy or still to be reported.
    ``unwell``: something is unhealthy. ``refusal`` is one that lasts. ``fails`` is what
    ``failWhen`` says; None when it has no answer.
    """

    silent_since: str | None = None
    translated: bool = False
    well: bool = False
    unwell: bool = False
    refusal: str = ""
    fails: bool | None = False
    message: str = ""
    delivered: bool = False

    @property
    def heard(self) -> bool:
        """Whether the edge was heard of lately."""
        return self.silent_since is None


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """The last verdict, and since when it is well, or unwell; in seconds of one clock."""

    verdict: Verdict = "Waiting"
    well_since: float | None = None
    unwell_since: float | None = None
    reason: str = ""
    message: str = ""


class Terms(NamedTuple):
    """What a rollout asks of destinations, in seconds."""

    min_ready: float
    deadline: float


class Judged(NamedTuple):
    """A verdict, and after how many seconds it may be another without any event."""

    record: VerdictRecord
    again: float | None = None


def judge(
    evidence: Evidence,
    record: VerdictRecord,
    terms: Terms,
    now: float,
    in_flight_seconds: float,
    *,
    unwell_before: bool = False,
) -> Judged:
    """Return what is to be thought of a destination now.

    *in_flight_seconds* have passed since it was assigned or heard of again.
    """
    if record.verdict == BAD or not evidence.heard:
        # Of a silent edge nothing new is known, and no time counts against it.
        return Judged(VerdictRecord(record.verdict, None, None, record.reason, record.message))
    blamed: Verdict = "Excused" if unwell_before else "Bad"
    wrong = _wrong(evidence)
    if evidence.translated and wrong:
        return Judged(VerdictRecord(blamed, None, None, wrong, evidence.message))
    well = now if record.well_since is None else record.well_since
    unwell = now if record.unwell_since is None else record.unwell_since
    if record.verdict == GOOD:
        if not evidence.unwell:
            return Judged(VerdictRecord("Good"))
        patience = max(terms.min_ready, _MIN_UNWELL_SECONDS)
        if now - unwell >= patience:
            return Judged(VerdictRecord(blamed, None, None, UNWELL, evidence.message))
        return Judged(VerdictRecord("Good", None, unwell), unwell + patience - now)
    left = terms.deadline - in_flight_seconds
    fit = evidence.translated and evidence.well and evidence.fails is False
    if fit and now - well >= terms.min_ready:
        return Judged(VerdictRecord("Good"))
    if record.verdict == EXCUSED:
        # It may get well yet.
        since = well if fit else None
        again = None if since is None else since + terms.min_ready - now
        return Judged(VerdictRecord("Excused", since, None, record.reason, record.message), again)
    if fit:
        # Well at the deadline is given the time to show it: how long it was well already may have
        # been forgotten by a process that was started again.
        return Judged(VerdictRecord("Waiting", well), well + terms.min_ready - now)
    if left <= 0:
        text = evidence.message or "it was not good at the deadline"
        return Judged(VerdictRecord(blamed, None, None, DEADLINE_EXCEEDED, text))
    return Judged(VerdictRecord("Waiting"), left)


def _wrong(evidence: Evidence) -> str:
    if evidence.refusal in LASTING_REFUSALS:
        return evidence.refusal
    return FAIL_WHEN if evidence.fails else ""
