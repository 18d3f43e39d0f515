"""The status of a source, made of what all its destinations report.

Tools that wait (``kubectl rollout status``, ``helm --wait``, Flux by kstatus, Argo CD) judge an
object by its own status. Nothing runs where a source is, so with ``reportedState: Aggregate`` it is
given one from which they read what is so: it is finished when every destination that was heard of
has its present content and is healthy there, and not before.

* ``observedGeneration`` is the source's generation once all of these have applied it, else one
  less. It is one less, too, where no other field would show a tool that something is not healthy.
* Numbers beside ``spec.replicas`` are the worst destination's (``aggregate_numbers``).
* A condition is False where any destination says so and True where all do. Those that tell of
  trouble (``Failed``, ``Stalled``) are True where any is. Reason and message are those of the first
  destination that is not healthy, and the message counts.
* ``Reconciling``, which kstatus knows for every kind, is there while something is not healthy.
* A Job is Complete when it is everywhere and Failed when it is anywhere. Once it is either it stays
  so, as Kubernetes has it.
* A claim is Bound when it is everywhere; a Pod runs, or has succeeded, when it does everywhere.
* All else is left out: an address or a name that one edge gave out means nothing elsewhere. Of
  Kubernetes' other kinds nothing is said.

Destinations that are unknown (their Lease has lapsed) hold nothing back; messages count them. With
none that was heard of there is nobody to say that it is finished.

Edges are untrusted. All they can bring into the status is counts, words for conditions that look
like such, and a sentence, each of a length that is bounded here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from skerry.api.objects import Object, Raw, section_of
from skerry.logic.fleet.summary.aggregate_numbers import COUNTING, Extent, count
from skerry.logic.fleet.summary.gathered import Gathered
from skerry.logic.fleet.summary.health import TROUBLE, conditions_of
from skerry.logic.fleet.summary.tally import ConditionTotal
from skerry.logic.machinery.conditions import condition_of, dated

RECONCILING: Final = "Reconciling"
MAX_MESSAGE_LENGTH: Final = 512
_MAX_CONDITIONS = 32
_PUNCTUATION = frozenset("-._/")
_DEPLOYMENT = ("apps", "Deployment")
_JOB = ("batch", "Job")
_PHASED = (("", "Pod"), ("", "PersistentVolumeClaim"))

# Reasons of our own, where no destination gives one.
_EVERYWHERE = "AllDestinations"
_NONE_HEARD_OF = "NoDestinationHeardOf"
_NOT_DELIVERED = "NotDelivered"
_NOT_HEALTHY = "DestinationNotHealthy"


def aggregated(group: str, kind: str, source: Raw, found: Gathered, now: str) -> Object | None:
    """Return the status that *source* is to have; None where its kind has no room for one.

    What the present status says already stays as it is, times included: a second call on its own
    result returns an equal one.
    """
    making = _Making(source, found, now)
    if (group, kind) == _JOB:
        return making.job()
    if (group, kind) in COUNTING:
        return making.counted(group, kind)
    if (group, kind) in _PHASED:
        return making.phased(kind)
    is_custom = "." in group and not group.endswith(".k8s.io")
    return making.conditional() if is_custom else None


class _Making:
    """One status in the making."""

    def __init__(self, source: Raw, found: Gathered, now: str) -> None:
        self._found = found
        self._now = now
        self._spec = section_of(source, "spec")
        self._status = section_of(source, "status")
        self._generation = count(section_of(source, "metadata"), "generation")
        present = found.known > 0 and found.generation >= self._generation
        self._delivered = present and found.delivered == found.known
        self._healthy = self._delivered and found.healthy == found.known

    # -- kinds -------------------------------------------------------------------------------

    def counted(self, group: str, kind: str) -> Object:
        """Return the status of a kind that is judged by numbers."""
        found, worst = self._found, self._found.worst
        extent = Extent(found.min, found.max, dict(worst.report.numbers) if worst else {})
        counts = COUNTING[group, kind](self._spec, extent, self._healthy)
        if (group, kind) == _DEPLOYMENT:
            conditions = self._deployment_conditions()
        else:
            conditions = [*self._merged(), *self._reconciling()]
        return {
            "observedGeneration": self._observed(shown=counts.shown),
            **counts.fields,
            **self._dated(conditions),
        }

    def conditional(self) -> Object:
        """Return the status of a kind that somebody defined; what that has no field for is lost."""
        observed = {"observedGeneration": self._observed(shown=True)}
        return {**observed, **self._dated([*self._merged(), *self._reconciling()])}

    def phased(self, kind: str) -> Object:
        """Return the status of a kind that is judged by its phase."""
        conditions = [*self._merged(), *self._reconciling()]
        phase = "Pending"
        if self._healthy:
            running = any(each.type == "Ready" and each.true for each in self._found.conditions)
            phase = "Bound" if kind != "Pod" else "Running" if running else "Succeeded"
        return {"phase": phase, **self._dated(conditions)}

    def job(self) -> Object:
        """Return the status of a Job, whose counters and end only ever grow."""
        found, before = self._found, self._status
        # For Argo CD a condition that is there counts, whatever it says.
        ended = {kind: why for kind in ("Complete", "Failed") if (why := self._ended(kind))}
        if len(ended) > 1:
            ended.pop("Failed" if self._stated("Complete") else "Complete")
        status: Object = {}
        for name, seen in (("succeeded", found.min), ("failed", found.max)):
            if number := max(count(seen, name), count(before, name)):
                status[name] = number
        if not ended and (active := count(found.max, "active")):
            status["active"] = active
        if ended or self._healthy or before.get("startTime"):
            status["startTime"] = before.get("startTime") or self._now
        if "Complete" in ended:
            status["completionTime"] = before.get("completionTime") or self._now
        conditions = [self._condition(kind, "True", *ended[kind]) for kind in ended]
        return {**status, **self._dated(conditions or list(self._reconciling()))}

    def _ended(self, kind: str) -> tuple[str, str] | None:
        """Return reason and message of a Job's end, if it has come to that."""
        if (stated := self._stated(kind)) is not None:
            return str(stated.get("reason") or kind), str(stated.get("message") or "")
        total = next((each for each in self._found.conditions if each.type == kind), None)
        true = total.true if total else 0
        if kind == "Complete" and self._delivered and true == self._found.known:
            return _EVERYWHERE, self._counted(true)
        if kind == "Failed" and true:
            return self._reason(), self._because(self._counted(true))
        return None

    def _stated(self, kind: str) -> Raw | None:
        """Return a condition that the present status says is True."""
        stated = condition_of(conditions_of(self._status), kind)
        return stated if stated is not None and stated.get("status") == "True" else None

    # -- generations -------------------------------------------------------------------------

    def _observed(self, *, shown: bool) -> int:
        seen = self._delivered and (self._healthy or shown)
        return self._generation if seen else max(0, self._generation - 1)

    # -- conditions --------------------------------------------------------------------------

    def _merged(self, *, besides: tuple[str, ...] = ()) -> list[Object]:
        if self._healthy:
            # A kind that is judged by numbers may be healthy in spite of what it says.
            besides = (*besides, *TROUBLE)
        return [
            self._of_all(total)
            for total in self._found.conditions[:_MAX_CONDITIONS]
            if total.type not in (RECONCILING, *besides) and _is_plain(total.type)
        ]

    def _of_all(self, total: ConditionTotal) -> Object:
        if total.type in TROUBLE:
            status = "True" if total.true else "Unknown" if total.unknown else "False"
            good = status == "False"
        else:
            # Where all are healthy, whoever does not have the condition does not need it.
            every = self._healthy or 0 < total.true == self._found.known
            good = every and not total.false and not total.unknown
            status = "False" if total.false else "True" if good else "Unknown"
        text = self._counted(total.true)
        if good:
            return self._condition(total.type, status, _EVERYWHERE, text)
        return self._condition(total.type, status, self._reason(), self._because(text))

    def _deployment_conditions(self) -> list[Object]:
        """Return the conditions by the reasons that tools know of Deployments."""
        totals = {each.type: each for each in self._found.conditions}
        others = self._merged(besides=("Available", "Progressing", "ReplicaFailure"))
        healthy = self._counted(self._found.healthy)
        if self._healthy:
            reasons = {"Available": "MinimumReplicasAvailable", "Progressing": _NEW_AVAILABLE}
            found = [self._condition(kind, "True", reasons[kind], healthy) for kind in reasons]
            return found + others
        progressing, failing = totals.get("Progressing"), totals.get("ReplicaFailure")
        stuck = progressing is not None and progressing.false > 0
        found = [
            self._of_all(totals.get("Available", ConditionTotal("Available", 0, 0, 0))),
            self._condition(
                "Progressing",
                "False" if stuck else "True",
                "ProgressDeadlineExceeded" if stuck else "ReplicaSetUpdated",
                self._because(healthy),
            ),
        ]
        if failing is not None and failing.true:
            found.append(self._of_all(failing))
        return found + others

    def _reconciling(self) -> Iterator[Object]:
        if not self._healthy:
            text = self._because(self._counted(self._found.healthy))
            yield self._condition(RECONCILING, "True", self._reason(), text)

    def _condition(self, kind: str, status: str, reason: str, message: str) -> Object:
        text = message[:MAX_MESSAGE_LENGTH]
        return {"type": kind, "status": status, "reason": reason, "message": text}

    def _dated(self, conditions: list[Object]) -> Object:
        """Return the member of a status that has *conditions*, each with its time."""
        before = conditions_of(self._status)
        found = [dated(each, condition_of(before, each["type"]), self._now) for each in conditions]
        return {"conditions": found} if found else {}

    # -- words -------------------------------------------------------------------------------

    def _counted(self, number: int) -> str:
        text = f"{number} of {self._found.known} destinations"
        return f"{text}, {self._found.unknown} unknown" if self._found.unknown else text

    def _reason(self) -> str:
        if not self._found.known:
            return _NONE_HEARD_OF
        worst = self._found.worst
        if worst is None or worst.report.health.status == "True":
            return _NOT_DELIVERED
        reason = worst.report.health.reason
        return reason if _is_word(reason) else _NOT_HEALTHY

    def _because(self, counted: str) -> str:
        """Return what is counted, and what the worst destination has to say."""
        worst = self._found.worst
        if not self._found.known:
            return counted
        if worst is None:
            return f"{counted}; the present content is not in every mailbox yet"
        health = worst.report.health
        text = health.message or health.reason
        if health.status == "True":
            text = "the present content has not been applied"
        return f"{counted}; {worst.destination.location}: {text}"


_NEW_AVAILABLE = "NewReplicaSetAvailable"


def _is_word(text: str) -> bool:
    """Tell whether *text* is what conditions take for a reason."""
    return text.isascii() and text.isalnum() and text[0].isalpha()


def _is_plain(kind: str) -> bool:
    """Tell whether an edge's word for a condition looks like one."""
    return kind.isascii() and all(char.isalnum() or char in _PUNCTUATION for char in kind)
