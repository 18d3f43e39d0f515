"""A real Kubernetes API server for a test, in the test's own process, in a fraction of a second.

For everybody who writes Kubernetes software in Python: no Docker, no binaries to download, no
mocks. With pytest the fixtures come with the package (see ``skerry.testing.plugin``)::

    def test_my_controller(skerry_server):
        kubernetes.config.load_kube_config(str(skerry_server.kubeconfig))
        ...

Anywhere else it is a context manager::

    with api_server() as server:
        subprocess.run(["kubectl", "get", "ns"], env=os.environ | server.environment)

The server speaks HTTPS on a free port of the loopback interface and keeps its objects in memory.
It is the one that ``skerry serve`` runs: CustomResourceDefinitions, server-side apply, watches,
RBAC, admission policies. With ``controllers="core"`` namespaces are emptied, garbage is collected
and quotas are counted; with ``"all"`` Deployments, Jobs and the like make pods as well. With
``workspaces`` it is a hub, with kcp's workspaces.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from skerry.app.settings import ServerSettings
    from skerry.app.standalone import Running

# A server that takes longer than this to start or to end never will.
_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class TestServer:
    """A server that runs. Whoever reads ``kubeconfig`` is its administrator."""

    # Or pytest would take it for a test.
    __test__ = False

    url: str
    kubeconfig: Path

    @property
    def environment(self) -> dict[str, str]:
        """What kubectl and client libraries find the server by."""
        return {"KUBECONFIG": str(self.kubeconfig)}


@contextlib.contextmanager
def api_server(
    *,
    controllers: Literal["all", "core", "none"] = "none",
    workspaces: bool = False,
    directory: Path | None = None,
) -> Iterator[TestServer]:
    """Run a server inside the context.

    *directory* is where its certificates and its kubeconfig are kept; by default a temporary one
    that goes with the server.
    """
    # Pytest loads the fixtures in every run; only who asks for a server pays for loading one.
    from skerry.app.settings import ServerSettings
    from skerry.store.open import StoreSettings

    with contextlib.ExitStack() as stack:
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skerry-")))
        settings = ServerSettings(
            data_dir=directory,
            port=0,
            store=StoreSettings(kind="memory"),
            controllers=controllers,
            workers=0,
        )
        thread = _ServerThread(settings, workspaces=workspaces)
        running = thread.begin()
        try:
            yield TestServer(running.url, running.kubeconfig)
        finally:
            thread.end()


class _ServerThread:
    """A server in a thread with an event loop of its own."""

    def __init__(self, settings: ServerSettings, *, workspaces: bool) -> None:
        self._settings = settings
        self._workspaces = workspaces
        self._thread = threading.Thread(target=self._run, name="skerry-test-server", daemon=True)
        self._ready = threading.Event()
        self._running: Running | None = None
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None

    def begin(self) -> Running:
        """Start and return when requests are answered; raises what kept it from starting."""
        self._thread.start()
        self._ready.wait(_PATIENCE_SECONDS)
        if self._running is None:
            raise RuntimeError("the API server did not start") from self._failure
        return self._running

    def end(self) -> None:
        """Stop and return when nothing of it runs any more."""
        if self._loop is not None and self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(_PATIENCE_SECONDS)
        if self._failure is not None:
            raise RuntimeError("the API server failed") from self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:  # noqa: BLE001 handed to whoever waits
            self._failure = failure
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from skerry.app.hub import hub_flavor
        from skerry.app.standalone import PLAIN_SERVER, serving

        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        flavor = hub_flavor() if self._workspaces else PLAIN_SERVER
        async with serving(self._settings, flavor) as running:
            self._running = running
            self._ready.set()
            await self._ended.wait()
