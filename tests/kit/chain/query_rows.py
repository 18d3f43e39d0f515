"""A query and rows made for it, one destination each."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.query.expressions import kept
from skerry.logic.fleet.query.plan import plan_of
from skerry.logic.fleet.query.rows import Evaluator, Ident, Row, Target
from skerry.logic.fleet.summary.freshness import LIVE, Lease
from skerry.logic.fleet.summary.health import HEALTHY
from skerry.logic.fleet.summary.report import Report

WEB = ObjectRef("", "apps", "deployments", "shop", "web")
DEPLOYMENTS: Object = {"apiGroup": "apps", "resources": ["deployments"]}
REPORT = Report(delivered=True, reported=True, health=HEALTHY, time="2030-01-01T00:00:00Z")


class Asked:
    """A query, and rows made for it."""

    def __init__(self, **spec: Any) -> None:
        plan, errors = plan_of({"from": DEPLOYMENTS, **spec})
        assert plan is not None, errors
        self.plan = plan
        self._parts = plan.parts()
        positions = {part.tree: number for number, part in enumerate(self._parts, 1)}
        self.evaluator = Evaluator(plan, positions)

    def row(
        self,
        status: Object | None,
        lease: Lease = LIVE,
        location: str = "oslo",
        region: str = "north",
        report: Report = REPORT,
    ) -> Row:
        """Return the row of a Location; without a status nothing is there."""
        copy = None
        if status is not None:
            scope = {"status": status, "obj": {"kind": "Deployment"}}
            copy = (report, *(kept(part.program, dict(scope)) for part in self._parts))
        where = Destination("inv", location, "st", f"uid-{location}")
        labels, target = {"region": region}, Target(ready=True)
        return Row(Ident(location, WEB, where.uid), where, "web", copy, labels, target, lease)
