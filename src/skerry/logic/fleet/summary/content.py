"""The summary object: its name, its content, and whether it needs writing.

A summary is for people and for those who wait on numbers. Its size must not grow with the fleet:
it counts all destinations and names some, the first that are not well. Which those are depends on
an order that is the same in every process, so that two summarizers, or one before and after its
restart, write the same object; an object that is the same is not written again. Its name is
readable, made of placement, kind and name, and becomes a hash only where that would not be a name
or is another summary's already.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final, NamedTuple

from skerry.api.edge import API_VERSION, SOURCE_PLACEMENT, SliceOwner
from skerry.logic.fleet.placement.slices import label_for
from skerry.logic.fleet.summary.health import WITHOUT_HEALTH, has_health
from skerry.logic.fleet.summary.report import Number
from skerry.logic.fleet.summary.standing import Detail
from skerry.logic.fleet.summary.tally import Totals
from skerry.logic.machinery.names import dns1123_subdomain
from skerry.logic.machinery.workspaces.names import base36

Raw = dict[str, Any]

# A detail is some 300 bytes: a summary of 10,000 destinations stays near 30 KB, and a person who
# has mended the first hundred unhealthy ones sees the next.
MAX_DETAILS: Final = 100
# Fields and condition types over all destinations; each edge may name others.
MAX_FIELDS: Final = 128

_MAX_NAME_LENGTH = 253
_UNFIT = re.compile(r"[^a-z0-9]+")
_HASH_LENGTH = 10
_INT64 = 2**63 - 1
# In place of a number, where there is nothing to count.
NO_NUMBER: Final = "–"  # noqa: RUF001 - a dash, as people write it


class Subject(NamedTuple):
    """The object a summary is about; ``version`` is the one its owner's workspace prefers."""

    group: str
    version: str
    resource: str
    kind: str
    namespace: str
    name: str


def summary_name(placement: str, subject: Subject, *, hashed: bool = False) -> str:
    """Return ``<placement>-<resource>-<name>``.

    Cut and *hashed* past 253 characters, and on request, when another summary has the plain name:
    ``a`` with pods ``pods-b`` and ``a-pods`` with pods ``b`` would share it.
    """
    plain = f"{placement}-{subject.resource}-{subject.name}"
    if not hashed and not dns1123_subdomain(plain):
        return plain
    # RBAC names may have colons and more, which those of custom resources may not.
    fit = _UNFIT.sub("-", plain.lower())
    identity = "\n".join((placement, subject.group, subject.resource, subject.name))
    mark = base36(hashlib.sha224(identity.encode()).digest())[:_HASH_LENGTH]
    return f"{fit[: _MAX_NAME_LENGTH - _HASH_LENGTH - 1].strip('-')}-{mark}"


def summary_content(placement: str, subject: Subject, totals: Totals) -> Raw:
    """Return everything of a summary object but its metadata."""
    content: Raw = {
        "placement": placement,
        "object": _reference(subject),
        "destinations": totals.destinations,
        "delivered": totals.delivered,
        "reported": totals.reported,
        "healthy": totals.healthy,
        "unhealthy": totals.unhealthy,
        "unknown": totals.unknown,
        "health": _health(subject, totals),
        "numbers": [
            {
                "field": each.field,
                "sum": _bounded(each.sum),
                "min": _bounded(each.min),
                "max": _bounded(each.max),
            }
            for each in totals.numbers[:MAX_FIELDS]
        ],
        "conditionCounts": [
            {"type": c.type, "true": c.true, "false": c.false, "unknown": c.unknown}
            for c in totals.conditions[:MAX_FIELDS]
        ],
        "details": [_detail(detail) for detail in totals.details],
        "detailsOmitted": totals.destinations - len(totals.details),
    }
    for name, moment in (("newestReportTime", totals.newest), ("oldestReportTime", totals.oldest)):
        if moment:
            content[name] = moment
    return content


def summary_object(
    name: str, placement: str, placement_uid: str, subject: Subject, totals: Totals
) -> Raw:
    """Return a whole summary, owned by its EdgePlacement."""
    metadata: Raw = {
        "name": name,
        "labels": {SOURCE_PLACEMENT: label_for(placement)},
        "ownerReferences": [SliceOwner(placement, placement_uid).reference()],
    }
    if subject.namespace:
        metadata["namespace"] = subject.namespace
    return {
        "apiVersion": API_VERSION,
        "kind": "StatusSummary" if subject.namespace else "ClusterStatusSummary",
        "metadata": metadata,
        **summary_content(placement, subject, totals),
    }


def _reference(subject: Subject) -> Raw:
    reference = subject._asdict()
    return {name: value for name, value in reference.items() if value or name == "group"}


def _health(subject: Subject, totals: Totals) -> str:
    """Return how many are healthy, for people: none of a kind without health is not ill.

    Nor is what has a health elsewhere, but no edge heard of acts upon it.
    """
    if totals.healthy or totals.unhealthy:
        return str(totals.healthy)
    judged = has_health(subject.group, subject.kind) and not _is_never_judged(totals)
    return str(totals.healthy) if judged else NO_NUMBER


def _is_never_judged(totals: Totals) -> bool:
    """Tell whether nobody heard of will ever call it healthy or not; those who may come first."""
    heard = [report for _, report in totals.details if report.last_heard is None]
    return bool(heard) and heard[0].health.reason in WITHOUT_HEALTH


def _detail(detail: Detail) -> Raw:
    destination, report = detail
    found: Raw = {
        "cluster": destination.cluster,
        "location": destination.location,
        "syncTarget": destination.sync_target,
        "delivered": report.delivered,
        "healthy": report.health.status,
    }
    for name, value in (
        ("reason", report.health.reason),
        ("message", report.health.message),
        ("reportTime", report.time),
        ("lastHeard", report.last_heard),
    ):
        if value:
            found[name] = value
    return found


def _bounded(number: Number) -> Number:
    """Keep a sum within what JSON decoders of typed languages bear."""
    return max(-_INT64, min(_INT64, number)) if isinstance(number, int) else number
