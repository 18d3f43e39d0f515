"""``python -m skerry.app.edge_run DIRECTORY [READY_FD]``: one edge in the foreground.

What the supervisor runs. A module of its own, because loading every other command first would
cost a third of an edge's start.
"""

from __future__ import annotations

import sys
from pathlib import Path

from skerry.app.edge_config import EdgeConfigError, load_config
from skerry.app.edge_node import edge_flavor, edge_settings
from skerry.app.standalone import StartError, run_server
from skerry.app.supervised import announcing
from skerry.edge.agent.pod_network import NetworkLost
from skerry.kit.log import report_failure


def run_edge(directory: Path, ready_fd: int = -1) -> int:
    """Run the edge kept in *directory* until stopped; returns the exit code."""
    try:
        config = load_config(directory)
        run_server(edge_settings(directory, config), edge_flavor(config), announcing(ready_fd))
    except* (EdgeConfigError, StartError, NetworkLost) as group:
        for line in _lines(group):
            report_failure("skerry edge", line)
        failed = True
    else:
        failed = False
    return int(failed)


def _lines(group: BaseExceptionGroup[BaseException]) -> list[str]:
    """Return what went wrong, however deep in groups it was raised."""
    found: list[str] = []
    for error in group.exceptions:
        found += _lines(error) if isinstance(error, BaseExceptionGroup) else [str(error)]
    return found


if __name__ == "__main__":
    sys.exit(run_edge(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else -1))
