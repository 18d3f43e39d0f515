"""Sources, and what their destinations may report, for properties of aggregated status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import strategies as st

from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.freshness import NEVER
from skerry.logic.fleet.summary.gathered import Gathered
from skerry.logic.fleet.summary.health import WITHOUT_HEALTH
from skerry.logic.fleet.summary.report import Report, report_of
from skerry.logic.fleet.summary.standing import Detail
from skerry.logic.fleet.summary.tally import ConditionTotal

Object = dict[str, Any]
CLUSTER = "wmw"


class Kind(NamedTuple):
    """A kind, and the fields of its status that are counts."""

    group: str
    kind: str
    counts: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ("Ready", "Available", "Stalled", "Odd")

    @property
    def api_version(self) -> str:
        return f"{self.group}/v1" if self.group else "v1"


DEPLOYMENT = Kind(
    "apps",
    "Deployment",
    ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    ("Available", "Progressing", "ReplicaFailure"),
)
STATEFUL_SET = Kind(
    "apps",
    "StatefulSet",
    ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
)
REPLICA_SET = Kind(
    "apps",
    "ReplicaSet",
    ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    ("ReplicaFailure",),
)
DAEMON_SET = Kind(
    "apps",
    "DaemonSet",
    (
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ),
)
JOB = Kind("batch", "Job", ("active", "succeeded", "failed"), ("Complete", "Failed"))
WIDGET = Kind("example.io", "Widget", ("size",))
KINDS = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET, DAEMON_SET, JOB, WIDGET)


class There(NamedTuple):
    """One destination: whether it was heard of, which generation its copy is of, and the copy."""

    known: bool
    generation: int
    report: Report


def source(kind: Kind, spec: Object, generation: int = 2, status: Object | None = None) -> Object:
    metadata = {"name": "web", "namespace": "shop", "generation": generation}
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
    return obj if status is None else {**obj, "status": status}


def specs(kind: Kind) -> st.SearchStrategy[Object]:
    replicas = st.integers(0, 3)
    strategies = st.sampled_from(
        [
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            {"type": "OnDelete"},
        ]
    )
    if kind == DEPLOYMENT:
        return st.fixed_dictionaries(
            {"replicas": replicas, "progressDeadlineSeconds": st.just(600)}
        )
    if kind in (JOB, WIDGET):
        return st.just({})
    return st.fixed_dictionaries({"replicas": replicas, "updateStrategy": strategies})


def statuses(kind: Kind) -> st.SearchStrategy[Object]:
    """Any status an edge might report of a kind, likely ones and unlikely ones."""
    counts = st.dictionaries(st.sampled_from(kind.counts), st.integers(0, 4))
    alike = st.integers(0, 4).map(lambda number: dict.fromkeys(kind.counts, number))
    words = st.dictionaries(
        st.sampled_from(kind.conditions), st.sampled_from(["True", "False", "Unknown"])
    )
    return st.builds(
        lambda numbers, found, revision: {
            **numbers,
            **({"conditions": [_condition(*each) for each in found.items()]} if found else {}),
            **({"updateRevision": revision} if revision else {}),
        },
        st.one_of(counts, alike, alike),
        words,
        st.sampled_from(["", "", "b"]),
    )


def _condition(kind: str, status: str) -> Object:
    return {"type": kind, "status": status, "reason": "Because", "message": "of this"}


def reports(kind: Kind, spec: Object) -> st.SearchStrategy[Report]:
    """Any report of a copy with *spec*."""
    made = st.builds(lambda status: _report(kind, spec, status), statuses(kind))
    return st.builds(
        lambda report, delivered: Report(
            delivered=delivered,
            reported=report.reported,
            health=report.health,
            numbers=report.numbers,
            conditions=report.conditions,
            digest=report.digest,
        ),
        made,
        st.sampled_from([True, True, True, False]),
    )


def _report(kind: Kind, spec: Object, status: Object) -> Report:
    return report_of(kind.group, kind.kind, source(kind, spec, 1, status))


def places(kind: Kind, spec: Object) -> st.SearchStrategy[list[There]]:
    """Some destinations, of which some lag behind."""
    there = st.builds(
        There,
        st.sampled_from([True, True, True, False]),
        st.sampled_from([2, 2, 2, 1]),
        reports(kind, spec),
    )
    return st.lists(there, max_size=4)


def destination(number: int) -> Destination:
    return Destination("imw", f"loc{number}", f"edge{number}", f"uid-{number}")


def detail(number: int, there: There) -> Detail:
    """Return the destination as a tally has it."""
    report = replace(there.report, origin=(CLUSTER, there.generation))
    if not there.known:
        assert NEVER.report is not None
        report = NEVER.report
    return Detail(destination(number), report)


def details(found: Sequence[There]) -> list[tuple[str, Detail]]:
    """Return all destinations by the UIDs of their SyncTargets."""
    return [(f"uid-{number}", detail(number, there)) for number, there in enumerate(found)]


def is_healthy(there: There) -> bool:
    """Tell whether a summary would call a destination delivered and healthy."""
    health = there.report.health
    fine = health.status == "True" or (
        health.status == "Unknown" and health.reason in WITHOUT_HEALTH
    )
    return there.known and there.report.delivered and fine


def gathered_plainly(found: Sequence[There]) -> Gathered:
    """Gather in one pass over everything: slow, simple, and what a tally must come to."""
    heard = [(number, there) for number, there in enumerate(found) if there.known]
    ill = [pair for pair in heard if not is_healthy(pair[1])]
    ill.sort(key=lambda pair: (_rank(pair[1].report), pair[0]))
    numbers = [dict(there.report.numbers) for _, there in heard]
    fields = sorted({field for each in numbers for field in each})
    return Gathered(
        destinations=len(found),
        unknown=len(found) - len(heard),
        delivered=sum(there.report.delivered for _, there in heard),
        healthy=len(heard) - len(ill),
        worst=detail(*ill[0]) if ill else None,
        generation=min((there.generation for _, there in heard), default=0),
        min={field: min(each.get(field, 0) for each in numbers) for field in fields},
        max={field: max(each.get(field, 0) for each in numbers) for field in fields},
        conditions=tuple(_totals(there.report for _, there in heard)),
    )


def _rank(report: Report) -> int:
    pending = report.health.status == "Unknown" and report.health.reason not in WITHOUT_HEALTH
    first = 0 if report.health.status == "False" else 3 if pending else 5
    return first + report.delivered


def _totals(found: Iterable[Report]) -> list[ConditionTotal]:
    kinds: dict[str, list[str]] = {}
    for report in found:
        for kind, status in report.conditions:
            kinds.setdefault(kind, []).append(status)
    return [
        ConditionTotal(kind, s.count("True"), s.count("False"), s.count("Unknown"))
        for kind, s in sorted(kinds.items())
    ]
