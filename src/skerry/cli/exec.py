"""skerry exec: a command in a pod at an edge."""

from __future__ import annotations

import sys
from typing import Any

import click

from skerry.app.edge_pods import edge_pods
from skerry.app.pod_command import run_command
from skerry.cli.hub_flags import answer_or_exit, finds_hub, hub_settings
from skerry.cli.pod_flags import at_pod
from skerry.cli.terminal import LocalTerminal, raw_input


@click.command(
    "exec",
    epilog="""\b
Examples:
  skerry exec florin web-7d9c4 -n shop -- ls -l /data
  skerry exec florin deploy/web -n shop -it -- sh
  tar c site | skerry exec root:imw-1:florin web-7d9c4 -n shop -i -c main -- tar x -C /data

\b
Exit codes:
  that of the command, where it ran to its end; else
  1  it was not run: no right to it, no such pod, or the edge has no tunnel; or it was cut off
  2  skerry exec was called in a way it does not understand
""",
)
@at_pod
@click.option("-i", "--stdin", is_flag=True, help="Pass on what is typed or piped in.")
@click.option("-t", "--tty", is_flag=True, help="Give the command a terminal.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@finds_hub
def exec(  # noqa: A001 - the command's name
    edge: str,
    pod: str,
    namespace: str,
    container: str,
    stdin: bool,
    tty: bool,
    command: tuple[str, ...],
    **flags: Any,
) -> None:
    """Run COMMAND in POD at EDGE, through the hub; write -- before it.

    EDGE and POD are named as for skerry logs.
    """
    query = [("command", word) for word in command]
    query += [("container", container)] if container else []
    query += [("stdout", "true"), *([("tty", "true")] if tty else [("stderr", "true")])]
    query += [("stdin", "true")] if stdin else []

    async def run() -> int:
        async with edge_pods(hub_settings(flags), edge, namespace) as pods:
            name = await pods.pod(pod)
            with raw_input(tty and stdin):
                return await run_command(pods, name, query, LocalTerminal())

    sys.exit(answer_or_exit("exec", run))
