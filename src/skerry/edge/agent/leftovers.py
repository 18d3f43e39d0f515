"""Ending what ran when nobody was looking: processes known only by their records."""

from __future__ import annotations

import contextlib
from pathlib import Path

from skerry.edge.agent.process_container import end_recorded


def end_recorded_pod(directory: Path) -> None:
    """Kill every recorded process of the pod that has *directory*."""
    for place in directory.glob("containers/*/*"):
        end_recorded(place)


def end_all(root: Path) -> None:
    """Kill every recorded process of every node below *root*; for an edge that is not running."""
    for directory in root.glob("*/*"):
        with contextlib.suppress(OSError):
            end_recorded_pod(directory)
