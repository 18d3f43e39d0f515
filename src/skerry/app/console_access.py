"""How a console reaches its hub: with whose rights it asks, and what it knows without asking.

One that runs inside the hub calls the engine and reads its tables; one in a process of its own
(``console_process``) is handed the same over sockets.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import skerry
from skerry.api.kinds import GroupVersionResource
from skerry.app.console_record import ConsoleError
from skerry.app.core_controllers import embedded_transport
from skerry.app.hub_server import HubServer
from skerry.app.settings import ServerSettings
from skerry.runtime.transport import UpgradingTransport
from skerry.server.access import Attributes, Authorizer
from skerry.server.security.signing_rotation import Authorities
from skerry.server.security.tls import LiveContext
from skerry.server.user import User
from skerry.web.desk import Facts
from skerry.web.eyes import May, Rights


@dataclass(frozen=True, slots=True)
class HubAccess:
    """What a console has of its hub."""

    transport_for: Callable[[User], UpgradingTransport]
    rights: Rights
    facts: Facts
    # Whether the hub takes tunnels.
    tunnels: Callable[[], bool]


def embedded_access(
    api: HubServer, authorizer: Authorizer, rights_version: Callable[[], int]
) -> HubAccess:
    """Return the access of a console that runs inside the hub.

    *rights_version* differs whenever somebody's rights may.
    """
    state = api.state

    async def facts() -> dict[str, object]:
        return facts_of(api)

    # Workspaces come and go as well, and with them who may enter.
    rights = Rights(
        allowing(authorizer),
        lambda: (rights_version(), len(state.clusters)),
        state.path_of,
        state.resolve,
    )
    return HubAccess(
        lambda user: embedded_transport(api, user), rights, facts, lambda: takes_tunnels(api)
    )


def allowing(authorizer: Authorizer) -> May:
    """Return what asks *authorizer* about whole kinds."""

    def may(user: User, cluster: str, verb: str, gvr: GroupVersionResource) -> bool:
        asked = Attributes(cluster, verb, gvr.group, gvr.version, gvr.resource)
        return authorizer.authorize(user, asked).allowed

    return may


def takes_tunnels(api: HubServer) -> bool:
    """Tell whether logs of pods at edges can be had through the hub."""
    return api.router.edges is not None


def facts_of(api: HubServer) -> dict[str, object]:
    """Return what a hello says of the hub."""
    version = {"version": skerry.__version__}
    return {**version, "store": api.store.identity, "revision": api.dispatcher.position}


def console_context(settings: ServerSettings, authorities: Authorities) -> ssl.SSLContext:
    """Return what the console's listener proves itself with, today and after a rotation."""
    given = given_files(settings)
    if given is not None:
        return given_context(*given)
    live = LiveContext(authorities.context(asks=False))

    def changed() -> None:
        live.present = authorities.context(asks=False)

    authorities.listeners.append(changed)
    return live


def given_files(settings: ServerSettings) -> tuple[Path, Path] | None:
    """Return the certificate and key that a person gives for the console."""
    certificate, key = settings.console_cert_file, settings.console_key_file
    if (certificate is None) != (key is None):
        raise ConsoleError("--console-cert and --console-key go together")
    return None if certificate is None or key is None else (certificate, key)


def given_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the context of a listener that shows a certificate that a person gives."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConsoleError(f"--console-cert {certificate}: {error}") from error
    return context
