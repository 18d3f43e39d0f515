"""A hub's tunnels, where its operator asked for them: put together here, off by default."""

from __future__ import annotations

from dataclasses import replace

from skerry.api.keys import type_prefix
from skerry.app.api_server import Parts
from skerry.app.hub_server import HubServer
from skerry.app.settings import ServerSettings
from skerry.app.standalone import StartError
from skerry.kit.clock import Clock
from skerry.logic.machinery.edges.tunnel import EDGES_PATH, TUNNEL_PATH
from skerry.server.access import Authorizer
from skerry.server.tunnel.lines import TunnelLines
from skerry.server.tunnel.reach import EdgeReach
from skerry.server.tunnel.sessions import EdgeSessions


def tunnel_lines(settings: ServerSettings, clock: Clock) -> TunnelLines | None:
    """Return where tunnels of edges end, if the hub takes any; ``StartError`` without a record."""
    if not settings.tunnel:
        return None
    if settings.audit_log is None:
        raise StartError("--tunnel needs --audit-log: every session at an edge is recorded there")
    return TunnelLines(clock)


def with_tunnels(parts: Parts, lines: TunnelLines) -> Parts:
    """Return *parts* of a hub that syncers dial."""
    offers = {"tunnel": TUNNEL_PATH, "edges": EDGES_PATH}
    return replace(
        parts,
        extensions={**parts.extensions, TUNNEL_PATH: lines.handle},
        offers={**parts.offers, **offers},
    )


def open_sessions(api: HubServer, lines: TunnelLines, authorizer: Authorizer) -> None:
    """Let people ask through *lines*; call once the hub knows what is there."""
    sessions = EdgeSessions(lines, EdgeReach(api.mailboxes, api.namespaces), authorizer)
    api.router.edges = sessions.route
    api.dispatcher.observe(type_prefix("", "namespaces"), sessions.namespace_changed)
