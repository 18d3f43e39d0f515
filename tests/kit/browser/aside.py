"""A hub inside the test's own process, whose clock a test can move while a browser looks at it.

It runs in a thread: playwright's loop has the test's.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from skerry.app.settings import OidcSettings
from tests.kit.server.edges import MovedClock
from tests.kit.server.hub import Hub, running_hub
from tests.kit.server.oidc_provider import Provider, listening

_PATIENCE_SECONDS = 60.0

T = TypeVar("T")


@dataclass
class Aside:
    """A hub with a console, and its clock."""

    loop: asyncio.AbstractEventLoop
    hub: Hub
    clock: MovedClock
    # At whom people may sign in, where there is somebody.
    provider: Provider | None = None
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return self.hub.running.console

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the hub's loop do *work*; return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(_PATIENCE_SECONDS)

    def code(self, user: str = "alice") -> str:
        """Return a new code of somebody here."""
        answer = self.run(self.hub.ask(user, "POST", "/skerry/console/codes"))
        return str(answer.body["code"])

    def pass_time(self, passed: timedelta) -> None:
        """Have that much time pass for this hub."""
        self.clock.ahead += passed


@contextmanager
def hub_aside(folder: Path, *, issuer: bool = False) -> Iterator[Aside]:
    """Run a hub in a thread inside the context, perhaps with an issuer that people sign in at."""
    started: list[Aside] = []
    ready = threading.Event()

    async def run() -> None:
        clock, loop = MovedClock(), asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            provider, known = None, None
            if issuer:
                provider, authority = await stack.enter_async_context(listening(folder))
                known = OidcSettings(provider.url, ("skerry",), username_prefix="oidc:"), authority
            running = running_hub(folder, console=True, clock=clock, issuer=known)
            hub = await stack.enter_async_context(running)
            started.append(Aside(loop, hub, clock, provider))
            ready.set()
            await started[0].left.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert ready.wait(_PATIENCE_SECONDS), "the hub did not start"
    aside = started[0]
    try:
        yield aside
    finally:
        aside.loop.call_soon_threadsafe(aside.left.set)
        thread.join(_PATIENCE_SECONDS)
