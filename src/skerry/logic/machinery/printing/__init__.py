"""How objects are shown as rows of a Table: the columns kubectl users know.

``columns_for`` answers for built-in kinds (custom ones bring their own, see ``machinery.crd``),
``render_table`` makes the ``meta.k8s.io/v1`` Table.
"""

from __future__ import annotations

from skerry.logic.machinery.printing.autoscaling import HORIZONTAL_POD_AUTOSCALER_COLUMNS
from skerry.logic.machinery.printing.cells import AGE, NAME
from skerry.logic.machinery.printing.cluster import CLUSTER_COLUMNS
from skerry.logic.machinery.printing.durations import human_duration, short_human_duration
from skerry.logic.machinery.printing.networking import NETWORKING_COLUMNS
from skerry.logic.machinery.printing.policy import POLICY_COLUMNS
from skerry.logic.machinery.printing.storage import STORAGE_COLUMNS
from skerry.logic.machinery.printing.table import (
    partial_metadata,
    partial_metadata_list,
    render_table,
)
from skerry.logic.machinery.printing.workloads import WORKLOAD_COLUMNS
from skerry.logic.machinery.resource import Column

__all__ = [
    "DEFAULT_COLUMNS",
    "columns_for",
    "human_duration",
    "partial_metadata",
    "partial_metadata_list",
    "render_table",
    "short_human_duration",
]

DEFAULT_COLUMNS: tuple[Column, ...] = (NAME, AGE)

_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    **CLUSTER_COLUMNS,
    **NETWORKING_COLUMNS,
    **POLICY_COLUMNS,
    **STORAGE_COLUMNS,
    **WORKLOAD_COLUMNS,
    ("autoscaling", "HorizontalPodAutoscaler"): HORIZONTAL_POD_AUTOSCALER_COLUMNS,
}


def columns_for(group: str, kind: str) -> tuple[Column, ...]:
    """Return the columns of a built-in kind; NAME and AGE for a kind nobody has described."""
    return _COLUMNS.get((group, kind), DEFAULT_COLUMNS)
