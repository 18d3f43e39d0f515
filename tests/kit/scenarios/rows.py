"""The rows of every table of the chain, as stories print them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from skerry.api.edge import DELIVERED, HEALTHY
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.summary.conditions import placement_conditions
from skerry.logic.fleet.summary.content import MAX_DETAILS
from skerry.logic.fleet.translation.difference import ItemDiff
from skerry.logic.fleet.translation.selected import CHOSEN
from skerry.logic.fleet.translation.types import ServedType

if TYPE_CHECKING:
    from tests.kit.scenarios.chain import Chain

WORKLOAD = "wmw"
KINDS = {
    "namespace": ServedType("", "namespaces", "Namespace", False, ("v1",)),
    "configmap": ServedType("", "configmaps", "ConfigMap", True, ("v1",)),
    "deployment": ServedType("apps", "deployments", "Deployment", True, ("v1",)),
}
BY_TYPE = {served.group_resource: name for name, served in KINDS.items()}


def _destination(chain: Chain) -> Iterator[str]:
    for ref in sorted(chain.placements):
        for each in chain.destination.destinations(ref):
            yield f"{placement_name(ref)}, {each.sync_target}: by Location {each.location}"


def _selected(chain: Chain) -> Iterator[str]:
    for placement in sorted(chain.placements):
        for (_, item), bits in sorted(chain.route.selected.of(placement).items()):
            why = "chosen" if bits & CHOSEN else "named"
            yield f"{placement_name(placement)}, {shown(item)}: {why}"


def _route(chain: Chain) -> Iterator[str]:
    for edge in chain.edges.values():
        for item in chain.items(edge):
            senders = [
                f"{placement_name(placement)} by {', '.join(location.name for location in ways)}"
                for cluster in sorted(chain.route.contributors(edge.mailbox))
                for placement in chain.route.placements_of(edge.mailbox, cluster, item)
                if (ways := chain.route.locations(placement, edge.mailbox))
            ]
            if senders:
                yield f"{edge.name}, {shown(item)}: {'; '.join(senders)}"


def _desired(chain: Chain) -> Iterator[str]:
    for edge in chain.edges.values():
        there = chain.desired.at(edge.mailbox)
        for item in chain.items(edge):
            row = there.row(item)
            if row.digest is not None:
                made = {} if row.render is None else row.render()
                yield f"{edge.name}, {shown(item)}: {row.digest.hex()[:8]} {_content(made)}"


def _difference(chain: Chain) -> Iterator[str]:
    for edge in chain.edges.values():
        for row in chain.differences(edge):
            yield f"{edge.name}, {shown(row.item)}: {row.verdict.value}{waiting(row)}"


def _copies(chain: Chain) -> Iterator[str]:
    for edge in chain.edges.values():
        for ref, obj in chain.copies(edge).items():
            yield f"{edge.name}, {shown(ref)}: {_content(obj)}"


def _present(chain: Chain) -> Iterator[str]:
    for edge in chain.edges.values():
        for ref, obj in sorted(edge.present.items()):
            yield f"{edge.name}, {shown(ref)}: {_content(obj)}"


def _report(chain: Chain) -> Iterator[str]:
    uids = {edge.mailbox.uid: edge.name for edge in chain.edges.values()}
    for (item, uid), report in chain.summary.reports.items():
        health = " ".join(filter(None, (report.health.status, report.health.reason)))
        delivered = "delivered" if report.delivered else "not delivered"
        yield f"{shown(item)}, {uids[uid]}: {delivered}, healthy {health}"


def _tally(chain: Chain) -> Iterator[str]:
    for placement, item in chain.summary.tallies:
        tally = chain.summary.tally(placement, item)
        if tally is None:
            continue
        found = tally.totals(MAX_DETAILS)
        yield (
            f"{placement_name(placement)}, {shown(item)}: {found.healthy} healthy, "
            f"{found.delivered} delivered, {found.reported} reported of {found.destinations}"
            f"{f', {found.unknown} unknown' if found.unknown else ''}"
        )
        for detail in found.details:
            if detail.report.health.status != "True":
                health = detail.report.health
                text = f"{health.status} {health.reason}: {health.message}"
                yield f"  {detail.destination.sync_target}: {text}"


def _standing(chain: Chain) -> Iterator[str]:
    for placement in sorted(chain.placements):
        standing = chain.summary.standing(placement)
        if standing is not None:
            for condition in placement_conditions(standing, (), ()):
                if condition["type"] in (DELIVERED, HEALTHY):
                    said = f"{condition['type']} {condition['status']}: {condition['message']}"
                    yield f"{placement_name(placement)}, {said}"


def placement_name(ref: ObjectRef) -> str:
    return ref.name if ref.cluster == WORKLOAD else f"{ref.name}@{ref.cluster}"


def shown(ref: ObjectRef) -> str:
    local = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
    return f"{BY_TYPE.get(ref.group_resource, ref.resource)} {local}"


def _content(obj: Object) -> str:
    found = {**(obj.get("data") or {}), **(obj.get("spec") or {})}
    return " ".join(f"{name}={value}" for name, value in sorted(found.items())) or "empty"


def waiting(row: ItemDiff) -> str:
    if row.missing is None:
        return ""
    scope = row.missing
    text = f"{scope.resource}" if hasattr(scope, "resource") else " ".join(map(str, scope))
    return f", {text} not read"


TABLES: dict[str, Callable[[Chain], Iterator[str]]] = {
    "destination": _destination,
    "selected": _selected,
    "route": _route,
    "desired": _desired,
    "difference": _difference,
    "copies": _copies,
    "present": _present,
    "report": _report,
    "tally": _tally,
    "standing": _standing,
}
