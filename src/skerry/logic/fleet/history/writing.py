"""How records are written, and found again by whoever wrote them.

Each controller has a chain of its own for each placement. A record that the server will never take
stops nothing: what it is about happens all the same, and the chain goes on after a gap.
"""

from __future__ import annotations

from typing import Final

from skerry.api.edge import DECIDED_BY, DECISION_RECORDS, SOURCE_PLACEMENT
from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.logic.fleet.placement.slices import label_for
from skerry.logic.machinery.plan import Create, Target

# The server will never take it: forbidden or full, not served there, too large, invalid.
REFUSALS: Final = (400, 403, 404, 413, 422)


def made_by(controller: str, placement: str) -> str:
    """Return the label selector of the records that a controller made about a placement."""
    return f"{SOURCE_PLACEMENT}={label_for(placement)},{DECIDED_BY}={controller}"


def creation(cluster: ClusterName, record: Object) -> Create:
    """Return what writes a record beside its placement."""
    target = Target(DECISION_RECORDS, record["metadata"]["name"], cluster=cluster)
    return Create(target, record, record["change"])
