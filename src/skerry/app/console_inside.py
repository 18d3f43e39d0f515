"""A hub's console in the hub's own process, as the hub sees it."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from skerry.app.console import Console
from skerry.app.console_access import HubAccess, console_context, embedded_access
from skerry.app.hub_server import HubServer
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.server.access import Authenticator, Authorizer
from skerry.server.engine import Recorder
from skerry.server.extensions import CONSOLE_CODES, CONSOLE_SESSIONS, ExtensionHandler, Visit
from skerry.server.http.message import Answer
from skerry.server.security.signing_rotation import Authorities


class ConsoleInside:
    """The console of one hub, beside its engine."""

    def __init__(
        self,
        settings: ServerSettings,
        hub_url: str,
        authenticator: Authenticator,
        authorizer: Authorizer,
        recorder: Recorder,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._settings = settings
        self._authorizer = authorizer
        self._console = Console(settings, hub_url, authenticator, recorder, clock, ids)
        # Counts changes of rights; what somebody may see is asked again whenever it differs.
        self._rights_version = 0

    @property
    def url(self) -> str:
        """Where browsers find it; empty while nowhere."""
        return self._console.url

    def extensions(self) -> dict[str, ExtensionHandler]:
        """Return what the API's own port answers about the console."""

        async def codes(visit: Visit) -> Answer:
            return await self._console.codes(visit.request, visit.cluster, visit.user)

        async def listed(visit: Visit) -> Answer:
            return await self._console.listed(visit.request, visit.user)

        return {CONSOLE_CODES: codes, CONSOLE_SESSIONS: listed}

    def rights_changed(self) -> None:
        """Have everybody's views look again what they may show."""
        self._rights_version += 1

    async def listen(
        self, authorities: Authorities, api: HubServer, sockets: Sequence[socket.socket] = ()
    ) -> None:
        """Take the port; ConsoleError when it cannot be had, or the certificate not be used."""
        context = console_context(self._settings, authorities)
        await self._console.listen(context, self._access(api), sockets)

    async def run(self, api: HubServer, authorities: Authorities) -> None:
        """Keep sessions' time and the feed until cancelled; then close the listener."""
        await self._console.run(self._access(api))

    def _access(self, api: HubServer) -> HubAccess:
        return embedded_access(api, self._authorizer, lambda: self._rights_version)
