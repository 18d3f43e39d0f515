"""A hub as a process: workspaces, their administrators, and the compute exports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skerry.api.edge import is_inert
from skerry.app.admin_kubeconfig import AdminEntries, ClusterEntry, ContextEntry, UserEntry
from skerry.app.console_record import ConsoleError, note_console
from skerry.app.hub_content import ensure_compute, ensure_edge_provider
from skerry.app.hub_controllers import run_hub_controllers
from skerry.app.hub_server import HubFacts, HubServer
from skerry.app.hub_tunnel import open_sessions, tunnel_lines, with_tunnels
from skerry.app.process_console import (
    CONSOLE_PROCESS,
    answer_for_console,
    console_elsewhere,
)
from skerry.app.security import (
    Security,
    follow_accounts,
    follow_mailboxes,
    follow_rbac,
    security_with,
)
from skerry.app.settings import ServerSettings
from skerry.app.standalone import (
    ServerAssembly,
    ServerDeps,
    ServerFlavor,
    StartError,
    server_parts,
)
from skerry.app.version import KCP
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.secret_files import secret_directory, write_secret
from skerry.logic.fleet.type_rules import with_type_rules
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP, ROOT, SYSTEM_ADMIN
from skerry.logic.machinery.workspaces.principals import RESERVED
from skerry.server.extensions import ExtensionHandler
from skerry.server.open_streams import OpenStreams
from skerry.server.security.authorization import MASTERS, RbacAuthorizer
from skerry.server.security.signing_rotation import Authorities
from skerry.server.security.tokens import DEFAULT_ISSUER, HUB_ISSUER
from skerry.server.workspaces.authorization import HubAuthorizer
from skerry.server.workspaces.bootstrap_credentials import BootstrapTokens
from skerry.server.workspaces.edge_certificates import EdgeCertificates, EdgeIssuer
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.state import HubState
from skerry.store.base import Store

if TYPE_CHECKING:
    from skerry.app.console_apart import ConsoleApart
    from skerry.app.console_inside import ConsoleInside

    Console = ConsoleInside | ConsoleApart

# Has the rules of the edge types, as the hub itself has.
_WORKER = "skerry.app.hub_worker"
_USERS = {"kcp-admin": ADMIN_GROUP, "shard-admin": MASTERS}


def hub_flavor(*, with_edge_provider: bool = False) -> ServerFlavor:
    """Return the kind of server a hub is; *with_edge_provider* also makes ``root:espw``."""
    state = HubState(extend=with_type_rules)
    mailboxes = Mailboxes(state)

    def security(
        settings: ServerSettings,
        authorities: Authorities,
        store: Store,
        clock: Clock,
        ids: IdSource,
    ) -> Security:
        rbac = RbacAuthorizer(shared=SYSTEM_ADMIN)
        tokens = admin_tokens(authorities.pki.directory, ids)
        rows = "\n".join(
            f'{token},{user},{user},"{_USERS[user]}"' for user, token in tokens.items()
        )
        authorizer = HubAuthorizer(rbac, state, mailboxes)
        return security_with(
            settings,
            authorities,
            store,
            clock,
            ids,
            rbac,
            authorizer,
            tokens_csv=rows,
            impersonation_home=authorizer.impersonation_home,
            reserved=RESERVED,
            edge_certificates=EdgeCertificates(mailboxes, clock),
            bootstrap_tokens=BootstrapTokens(store, mailboxes, clock),
            account=mailboxes.of_account,
            restricted=lambda cluster: mailboxes.mailbox(cluster) is not None,
            # Hubs of the previous version issued tokens as plain servers do.
            issuers=(HUB_ISSUER, DEFAULT_ISSUER),
        )

    async def assembly(deps: ServerDeps) -> ServerAssembly:
        return await _hub_assembly(deps, mailboxes, with_edge_provider=with_edge_provider)

    return ServerFlavor("hub", security, assembly)


def admin_tokens(directory: Path, ids: IdSource) -> dict[str, str]:
    """Return the administrators' tokens; made once, they survive restarts."""
    path = directory / "admin-tokens.json"
    if path.exists():
        found: dict[str, str] = json.loads(path.read_text())
        return found
    tokens = {user: ids.uid() for user in _USERS}
    secret_directory(directory)
    write_secret(path, json.dumps(tokens).encode())
    return tokens


async def _hub_assembly(
    deps: ServerDeps, mailboxes: Mailboxes, *, with_edge_provider: bool
) -> ServerAssembly:
    f = deps
    authorities = f.authorities
    parts = server_parts(f, KCP, "cluster", _WORKER)
    console = _console(f)
    parts = replace(parts, extensions={**parts.extensions, **_console_extensions(f, console)})
    lines = tunnel_lines(f.settings, f.clock)
    if lines is not None:
        parts = with_tunnels(parts, lines)
    api = HubServer(parts, f.security.rbac, mailboxes, _facts(f))
    await api.prepare()
    if lines is not None:
        open_sessions(api, lines, f.security.authorizer)
    streams = api.engine.streams
    follow_mailboxes(f.security.authentication, streams, mailboxes)
    changed = _rechecking(streams, console)
    await follow_rbac(f.security.rbac, f.store, api.dispatcher, is_inert, changed)
    follow_accounts(f.security.authentication, streams, api.dispatcher)

    started = asyncio.Event()

    async def complete() -> None:
        await ensure_compute(api)
        if with_edge_provider:
            await ensure_edge_provider(api)
        started.set()

    async def control() -> None:
        alone = f.settings.store.kind != "etcd"
        await run_hub_controllers(api, authorities, f.clock, f.ids, started=started, alone=alone)

    tokens = admin_tokens(f.settings.data_dir / "pki", f.ids)
    beside = [] if f.settings.controllers == "none" else [control]
    if console is not None:
        await _open_console(console, f, api)
        beside.append(partial(console.run, api, authorities))
    if f.member is None or f.member.index == CONSOLE_PROCESS:
        note_console(f.settings.data_dir, "" if console is None else console.url)
    return ServerAssembly(
        api,
        lambda: _admin_entries(f.url, authorities, tokens),
        complete=complete,
        beside=beside,
        console=console.url if console is not None else "",
    )


def _console_extensions(deps: ServerDeps, console: Console | None) -> dict[str, ExtensionHandler]:
    """Return what the API's own port answers about the console, wherever that is."""
    if console is not None:
        return console.extensions()
    member = deps.member
    return console_elsewhere(member.peers) if member is not None and member.console else {}


async def _open_console(console: Console, deps: ServerDeps, api: HubServer) -> None:
    member = deps.member
    try:
        await console.listen(deps.authorities, api, () if member is None else member.console)
    except ConsoleError as error:
        raise StartError(str(error)) from error
    if member is not None:
        answer_for_console(member.peers, api.engine)


def _facts(deps: ServerDeps) -> HubFacts:
    authorities, settings = deps.authorities, deps.settings
    issuer = EdgeIssuer(
        lambda: authorities.authority, deps.clock, deps.ids, settings.edge_certificate_lifetime
    )
    return HubFacts(
        deps.url,
        authorities.bundle,
        deps.security.tokens,
        issuer,
        settings.workspace_limits,
        settings.mailbox_limits,
        settings.tree_limits,
    )


def _admin_entries(url: str, authorities: Authorities, tokens: Mapping[str, str]) -> AdminEntries:
    """Return what the administrators' kubeconfig names, with the certificates of the moment."""
    bundle = authorities.bundle().encode()
    return AdminEntries(
        [
            ClusterEntry("base", url, bundle),
            ClusterEntry("root", f"{url}/clusters/{ROOT}", bundle),
        ],
        [UserEntry(user, token=token) for user, token in tokens.items()],
        [
            ContextEntry("base", "base", "kcp-admin"),
            ContextEntry("root", "root", "kcp-admin"),
            ContextEntry("system:admin", "base", "shard-admin"),
        ],
        "root",
    )


def _rechecking(streams: OpenStreams, console: Console | None) -> Callable[[], None]:
    """Return what is called when rights have changed."""
    if console is None:
        return streams.recheck

    def changed() -> None:
        streams.recheck()
        console.rights_changed()

    return changed


def _console_class(settings: ServerSettings) -> type[ConsoleInside | ConsoleApart]:
    """Return the console's kind; loaded here, for it brings the rules of all that it shows."""
    if settings.console_process:
        from skerry.app.console_apart import ConsoleApart

        return ConsoleApart
    from skerry.app.console_inside import ConsoleInside

    return ConsoleInside


def _console(deps: ServerDeps) -> Console | None:
    """Return the hub's console, where it is to have one."""
    member = deps.member
    if deps.settings.console_port is None:
        return None
    if member is not None and (member.index != CONSOLE_PROCESS or not member.console):
        return None
    try:
        return _console_class(deps.settings)(
            deps.settings,
            deps.url,
            deps.security.authentication,
            deps.security.authorizer,
            deps.observability.recorder,
            deps.clock,
            deps.ids,
        )
    except ConsoleError as error:
        raise StartError(str(error)) from error
