"""What was learnt of a server, shared by all clients on one transport.

Each fact is asked for once. All informers of a process begin in the same moment, and questions of
their own would open connections of their own, which the server then has to hold for everyone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from skerry.api.errors import Forbidden, MethodNotAllowed, NotFound
from skerry.api.objects import Object

Ask = Callable[[], Awaitable[Object]]


@dataclass(slots=True)
class ServerFacts:
    """See the module's text; None stands for what is not known."""

    version: Mapping[str, str] | None = None
    streaming_lists: bool | None = None
    # Paths of what the server offers beyond Kubernetes, by name.
    extensions: Mapping[str, str] | None = None
    # Over how many seconds its clients are to spread when they come back to it; 0: none was named.
    return_seconds: float = 0.0
    # Taken while a whole state is read, by clients that share a loop with the server; None: as many
    # are read at once as are asked for.
    reading: asyncio.Semaphore | None = None
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def known_version(self, ask: Ask) -> Mapping[str, str]:
        """Return the version, having asked for it if need be."""
        async with self._asking:
            if self.version is None:
                self.version = await ask()
            return self.version

    async def known_extensions(self, ask: Ask) -> Mapping[str, str]:
        """Return the paths of what the server offers beyond Kubernetes, by name."""
        async with self._asking:
            if self.extensions is None:
                try:
                    self.extensions = _paths(await ask())
                except (MethodNotAllowed, NotFound):
                    self.extensions = {}  # an ordinary server
                except Forbidden:
                    return {}  # so says an ordinary server too, or ours until we are let in
            return self.extensions


def _paths(answer: Object) -> dict[str, str]:
    return {each["name"]: each["path"] for each in answer.get("extensions") or ()}
