"""``python -m bench``: run suites, print the table, write the JSON."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from bench.report import Row, save, table

SUITES = (
    "api",
    "cost",
    "processes",
    "admission",
    "scheduler",
    "scheduler_wire",
    "workspaces",
    "placement",
    "history",
    "translator",
    "summary",
    "query",
    "syncer",
    "causes",
    "fleet",
    "overview",
    "console",
    "memory",
    "holding",
    "storm",
    "adversary",
    "revocation",
    "guards",
    "rollout",
    "churn",
)


def main() -> int:
    """Run what was asked for; exit 1 when a target was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("suites", nargs="*", default=["api"], help=f"of: {', '.join(SUITES)}")
    parser.add_argument("--peer-kubeconfig", type=Path, help="a server to compare with")
    parser.add_argument(
        "--large", action="store_true", help="also fill up to 1,000,000 objects, 10,000 workspaces"
    )
    parser.add_argument(
        "--seconds", type=float, help="how long churn lasts: 600 unless said, 60 before the console"
    )
    parser.add_argument("--baseline", type=Path, help="a checkout to compare cost with")
    parser.add_argument(
        "--instructions", action="store_true", help="count cost in instructions, by valgrind"
    )
    parser.add_argument("--edges", type=int, help="how many edges storm has: 1,000 unless said")
    parser.add_argument("--json", type=Path, default=Path("bench/out/latest.json"))
    arguments = parser.parse_args()
    rows: list[Row] = []
    for name in arguments.suites:
        if name not in SUITES:
            parser.error(f"no suite {name!r}; there are {', '.join(SUITES)}")
        module = importlib.import_module(f"bench.{name}")
        if name in ("api", "workspaces"):
            rows += module.run(arguments.peer_kubeconfig, large=arguments.large)
        elif name == "cost":
            rows += module.run(arguments.baseline, instructions=arguments.instructions)
        elif name in ("churn", "console") and arguments.seconds is not None:
            rows += module.run(arguments.seconds)
        elif name == "storm":
            rows += module.run(arguments.edges)
        else:
            rows += module.run()
    print(table(rows))
    save(rows, arguments.json)
    return 1 if any(row.met is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
