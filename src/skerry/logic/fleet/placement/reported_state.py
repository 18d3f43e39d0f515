"""Which state a placement asks for in its source objects.

``spec.reportedState`` says it. ``spec.wantSingletonReportedState``, KubeStellar's and older, means
``Singleton`` where it is true; beside another ``reportedState`` one of the two would be a mistake,
so both together are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.edge import REPORTED_STATES, SINGLETON, ReportedState
from skerry.api.errors import FieldError


def reported_state(spec: Mapping[str, Any]) -> ReportedState:
    """Return what the spec of an EdgePlacement asks for.

    A server that is not ours stores a contradiction; there the newer field counts.
    """
    for known in REPORTED_STATES:
        if spec.get("reportedState") == known:
            return known
    return SINGLETON if spec.get("wantSingletonReportedState") is True else "None"


def reported_state_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    """Return how the two fields contradict each other, if they do."""
    said = spec.get("reportedState")
    if said in (None, SINGLETON) or spec.get("wantSingletonReportedState") is not True:
        return []
    detail = f"contradicts spec.wantSingletonReportedState: true, which means {SINGLETON}"
    return [FieldError.invalid("spec.reportedState", said, detail)]
