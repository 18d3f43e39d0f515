"""A hub with its console and controllers, and people who look at it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

from tests.kit.browser.chromium import PATIENCE_MS
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.processes import SKERRY
from tests.kit.ports import free_ports

_LIVE = re.compile("live$")
Manifests = Sequence[Mapping[str, Any]]


class Console:
    """One hub with a console."""

    def __init__(self, directory: Path, *flags: str) -> None:
        (self.port,) = free_ports(1)
        self.directory = directory
        self.hub = Hub(directory, "--console-port", str(self.port), *flags)
        self.url = f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.hub.kubeconfig

    def start(self) -> Console:
        self.hub.start()
        return self

    def stop(self) -> None:
        self.hub.stop()

    def kubectl(self, workspace: str, *words: str, stdin: Manifests | None = None) -> str:
        """Run kubectl as the administrator in *workspace*; it must succeed."""
        flags = ("--kubeconfig", str(self.kubeconfig), "--server", self._server(workspace))
        return run(["kubectl", *flags, *words], stdin)

    def apply(self, workspace: str, *manifests: Mapping[str, Any]) -> None:
        self.kubectl(workspace, "apply", "--server-side", "-f", "-", stdin=manifests)

    def skerry(self, workspace: str, *words: str, stdin: Manifests | None = None) -> Any:
        """Run a command that prints JSON in *workspace*, and return that."""
        kubeconfig = self.directory / f"{workspace.replace(':', '.')}.kubeconfig"
        document = yaml.safe_load(self.kubeconfig.read_text())
        for cluster in document["clusters"]:
            cluster["cluster"]["server"] = self._server(workspace)
        kubeconfig.write_text(yaml.safe_dump(document))
        command = [SKERRY, *words, "--kubeconfig", str(kubeconfig), "-o", "json"]
        return json.loads(run(command, stdin))

    def code(self) -> str:
        """Return a new code that signs the administrator in."""
        words = ("create", "--raw", "/skerry/console/codes", "-f", "-")
        return str(json.loads(self.kubectl("root", *words, stdin=[{}]))["code"])

    def _server(self, workspace: str) -> str:
        document = yaml.safe_load(self.kubeconfig.read_text())
        base = str(document["clusters"][0]["cluster"]["server"]).split("/clusters/")[0]
        return f"{base}/clusters/{workspace}"


class Stack(Console):
    """The same with the edge API and its controllers, as ``skerry up`` runs them."""

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "hub" / "admin.kubeconfig"

    def start(self) -> Stack:
        ports = ("--port", "0", "--console-port", str(self.port))
        run([SKERRY, "up", "--init", "--detach", *self._folder, *ports])
        return self

    def stop(self) -> None:
        run([SKERRY, "down", *self._folder])

    @property
    def _folder(self) -> tuple[str, str]:
        return ("--data-dir", str(self.directory / "hub"))


def run(command: Sequence[str], stdin: Manifests | None = None) -> str:
    """Run a command that must succeed; return what it prints."""
    done = subprocess.run(
        command,
        input=None if stdin is None else yaml.safe_dump_all(stdin),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass
class Tab:
    """One tab, and everything it asked for or complained about."""

    console: Console
    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Go to a view of the console."""
        self.page.goto(f"{self.console.url}/console/{path}")
        return self.page

    def is_live(self) -> None:
        """Wait until the hub has greeted the tab."""
        expect(self.page.locator(".connection")).to_have_text(_LIVE)

    def foreign(self) -> list[str]:
        """Return what was asked of anybody but the console."""
        own = (self.console.url, self.console.url.replace("https:", "wss:"), "data:", "about:")
        return [each for each in self.requests if not each.startswith(own)]


@contextmanager
def tab(
    browser: Browser, console: Console, cookies: Sequence[Any] = (), **options: Any
) -> Iterator[Tab]:
    """Open a tab of a person of their own; *cookies* are those of somebody who signed in."""
    context = browser.new_context(ignore_https_errors=True, **options)
    try:
        if cookies:
            context.add_cookies(list(cookies))
        yield opened(console, context)
    finally:
        context.close()


def opened(console: Console, context: BrowserContext) -> Tab:
    """Return another tab of the same person."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    found = Tab(console, page)

    def complain(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            found.complaints.append(message.text)

    def ask(request: Request) -> None:
        found.requests.append(request.url)

    page.on("console", complain)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", ask)
    page.on("websocket", lambda socket: found.requests.append(socket.url))
    return found


def sign_in(browser: Browser, console: Console) -> list[Any]:
    """Sign the administrator in by a code, as the link does; return the cookies."""
    with tab(browser, console) as somebody:
        page = somebody.open(f"login#code={console.code()}")
        page.wait_for_url("**/console/fleet")
        return list(page.context.cookies())
