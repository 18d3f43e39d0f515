"""What the reports of one destination come to: the evidence it is judged by.

Everything of the revision that the destination was given counts, whatever the workspace has by
now: what was added since is not missing there, and what was deleted since still is to be well.

Well and unwell leave room for a third. An object whose edge has not reported its status yet is
neither: its destination waits, and nothing speaks against the revision. An edge that is silent has
no evidence at all, good or bad, whatever it reported before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.rollout.expression import ExpressionError, Predicate
from skerry.logic.fleet.rollout.verdict import LASTING_REFUSALS, Evidence
from skerry.logic.fleet.summary.freshness import NEVER, Lease, fresh_report
from skerry.logic.fleet.summary.health import WITHOUT_HEALTH
from skerry.logic.fleet.summary.report import Report, own_report

# Names of a report in expressions that numbers of a status do not replace.
_OWN = frozenset(
    ("group", "resource", "namespace", "name", "delivered", "healthy", "reason", "message")
)


class Item(NamedTuple):
    """An object of a revision, and whether its kind has a status; None: nobody knows."""

    ref: ObjectRef
    has_status: bool | None = None


def evidence(
    cluster: ClusterName,
    reports: Iterable[tuple[Item, Report | None]],
    lease: Lease | None,
    *,
    translated: bool,
    fail_when: Predicate | None = None,
) -> Evidence:
    """Return what is known of a destination; *cluster* is the workspace that places."""
    silent = (lease or NEVER).report
    if silent is not None:
        return Evidence(silent_since=silent.last_heard or "", translated=translated)
    found = [
        (item, fresh_report(report and own_report(report, cluster), lease))
        for item, report in reports
    ]
    unwell = [(item, report) for item, report in found if report.health.status == "False"]
    well = not unwell and all(_is_well(item, report) for item, report in found)
    refusal = next((r.health.reason for _, r in unwell if r.health.reason in LASTING_REFUSALS), "")
    return Evidence(
        None,
        translated,
        well,
        bool(unwell),
        refusal,
        _fails(fail_when, found) if translated else False,
        _message(unwell, found) if not well else "",
        translated and all(report.delivered for _, report in found),
    )


def _is_well(item: Item, report: Report) -> bool:
    """Tell whether an object was delivered and has nothing more to show.

    A kind without a status has shown all with its delivery. Where nobody knows whether it has one,
    a status that was reported says so.
    """
    if not report.delivered:
        return False
    asks = report.reported if item.has_status is None else item.has_status
    pending = asks and report.health.status != "True"
    return not pending or report.health.reason in WITHOUT_HEALTH


def _message(unwell: list[tuple[Item, Report]], found: list[tuple[Item, Report]]) -> str:
    """Return the first thing that is wrong, in words."""
    late = unwell or [(item, report) for item, report in found if not _is_well(item, report)]
    if not late:
        return ""
    item, report = late[0]
    where = f"{item.ref.namespace}/{item.ref.name}" if item.ref.namespace else item.ref.name
    text = report.health.message or report.health.reason
    return f"{item.ref.resource} {where}: {report.health.reason}: {text}"


def _fails(fail_when: Predicate | None, found: list[tuple[Item, Report]]) -> bool | None:
    """Return what the expression says; None when it has no answer: neither good nor bad."""
    if fail_when is None:
        return False
    try:
        return fail_when.holds([shown(item, report) for item, report in found])
    except ExpressionError:
        return None


def shown(item: Item, report: Report) -> Mapping[str, Any]:
    """Return a report as expressions see it: numbers of the status stand beside its own names."""
    numbers = dict(report.numbers)
    return {
        **{name: value for name, value in numbers.items() if name not in _OWN},
        "group": item.ref.group,
        "resource": item.ref.resource,
        "namespace": item.ref.namespace,
        "name": item.ref.name,
        "delivered": report.delivered,
        "healthy": report.health.status,
        "reason": report.health.reason,
        "message": report.health.message,
        "numbers": numbers,
        "conditions": dict(report.conditions),
    }
