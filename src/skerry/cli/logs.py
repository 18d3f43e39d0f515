"""skerry logs: the log of a pod at an edge."""

from __future__ import annotations

import sys
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import click

from skerry.app.edge_pods import edge_pods
from skerry.cli.durations import DurationRange
from skerry.cli.hub_flags import answer_or_exit, finds_hub, hub_settings
from skerry.cli.pod_flags import at_pod


@click.command(
    epilog="""\b
Examples:
  skerry logs florin web-7d9c4 -n shop
  skerry logs florin deploy/web -n shop -f --tail 20
  skerry logs root:imw-1:florin web-7d9c4 -n shop -c sidecar --since 10m

\b
Exit codes:
  0  the log was shown
  1  there is none to show: no right to it, no such pod, or the edge has no tunnel
  2  the command was called in a way it does not understand
"""
)
@at_pod
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option("-p", "--previous", is_flag=True, help="Of the container that ran before.")
@click.option("--timestamps", is_flag=True, help="Begin each line with its time.")
@click.option(
    "--tail", type=click.IntRange(min=-1), default=-1, help="So many last lines; -1: all."
)
@click.option(
    "--since",
    type=DurationRange(timedelta(seconds=1), timedelta(days=3650)),
    default=None,
    help="Only what was written within the last 5s, 2m or 3h.",
)
@click.option("--limit-bytes", type=click.IntRange(min=1), default=None, help="At most so many.")
@finds_hub
def logs(edge: str, pod: str, namespace: str, container: str, **flags: Any) -> None:
    """Show the log of POD at EDGE, through the hub.

    EDGE is the name of a SyncTarget of the current workspace; elsewhere WORKSPACE:NAME, or the name
    alone where the current workspace has placed something at one such edge only. POD is a pod's
    name or, as deploy/web, of what made it. Its syncer must run with --tunnel, and so must the hub.
    """
    since, tail = flags["since"], flags["tail"]
    wanted = {
        "container": container,
        "follow": "true" if flags["follow"] else "",
        "previous": "true" if flags["previous"] else "",
        "timestamps": "true" if flags["timestamps"] else "",
        "tailLines": str(tail) if tail >= 0 else "",
        "sinceSeconds": str(int(since.total_seconds())) if since else "",
        "limitBytes": str(flags["limit_bytes"] or ""),
    }
    query = [(name, value) for name, value in wanted.items() if value]

    async def show() -> None:
        async with edge_pods(hub_settings(flags), edge, namespace) as pods:
            name = await pods.pod(pod)
            async with aclosing(pods.log(name, query)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    sys.stdout.buffer.write(chunk)
                    sys.stdout.buffer.flush()
            if flags["follow"]:
                # A right that was taken away ends a log as the pod's own end does.
                await pods.explain_loss(name)

    answer_or_exit("logs", show)
