"""skerry port-forward: ports of a pod at an edge, on this machine."""

from __future__ import annotations

from typing import Any

import click

from skerry.app.edge_pods import edge_pods
from skerry.app.pod_ports import Forwarded
from skerry.app.pod_ports import forward as forward_ports
from skerry.cli.hub_flags import answer_or_exit, finds_hub, hub_settings
from skerry.cli.pod_flags import at_edge
from skerry.kit.log import announce


class _Ports(click.ParamType[Forwarded]):
    """``8080:80``, ``80``, or ``:80`` and ``0:80`` for any local port."""

    name = "[LOCAL:]REMOTE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Forwarded:
        text = str(value)
        local, colon, remote = text.rpartition(":")
        local = local if colon else remote
        if not (remote.isdecimal() and (local.isdecimal() or not local)):
            self.fail(
                f"{text!r}: want REMOTE, LOCAL:REMOTE or :REMOTE, such as 8080:80", param, ctx
            )
        found = Forwarded(int(local or 0), int(remote))
        if found.local > 65535 or not 0 < found.remote <= 65535:
            self.fail(f"{text!r}: ports are between 1 and 65535", param, ctx)
        return found


@click.command(
    "port-forward",
    epilog="""\b
Examples:
  skerry port-forward florin web-7d9c4 8080:80 -n shop
  skerry port-forward florin deploy/web :80 -n shop
  skerry port-forward root:imw-1:florin web-7d9c4 5432 9090:9090 -n shop

\b
Exit codes:
  1  the session has ended: no right to it, no such pod, or the edge or its tunnel went away
  2  the command was called in a way it does not understand
  130  it was interrupted, which is how it usually ends
""",
)
@at_edge
@click.argument("ports", nargs=-1, required=True, type=_Ports())
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    help="Address of this machine to listen on.",
)
@finds_hub
def port_forward(
    edge: str,
    pod: str,
    ports: tuple[Forwarded, ...],
    namespace: str,
    address: str,
    **flags: Any,
) -> None:
    """Forward ports of this machine to POD at EDGE, through the hub, until interrupted.

    EDGE and POD are named as for skerry logs. Each of PORTS is REMOTE, LOCAL:REMOTE or :REMOTE.
    """

    async def run() -> None:
        async with edge_pods(hub_settings(flags), edge, namespace) as pods:
            await forward_ports(pods, await pods.pod(pod), address, ports, announce)

    try:
        answer_or_exit("port-forward", run)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
