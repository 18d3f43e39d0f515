"""skerry demo: the example scenario, or a tour of the server alone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.status import Status

from skerry.app.demo import Narrator, run_demo
from skerry.app.demo_homes import demo_home
from skerry.app.ports import obstacle
from skerry.app.scenario import Ports, Scenario, run_scenario
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import StartError
from skerry.cli.printing import show
from skerry.kit import log
from skerry.kit.text import inert_line


class PlainNarrator:
    """One line per thing that happens, for logs and pipes."""

    def __init__(self) -> None:
        self._title = ""

    def begin(self, title: str) -> None:
        self._title = title

    def end(self, seen: str, milliseconds: float) -> None:
        self.say(f"ok   {self._title} ({milliseconds:.0f} ms): {seen}")

    def fail(self, why: str) -> None:
        self.say(f"FAIL {self._title}: {why}")

    def say(self, line: str) -> None:
        show(line, flush=True)


class TerminalNarrator:
    """The same in colour, with something that moves while one waits."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._title = ""

    def begin(self, title: str) -> None:
        self._title = inert_line(title)
        self._status = self._console.status(escape(self._title))
        self._status.start()

    def end(self, seen: str, milliseconds: float) -> None:
        self._rest()
        title, took = escape(self._title), f"{milliseconds:.0f} ms"
        self._console.print(f"[green]✓[/] [bold]{title}[/] [dim]{took}[/]")
        self._detail(seen, "dim")

    def fail(self, why: str) -> None:
        self._rest()
        self._console.print(f"[red]✗[/] [bold]{escape(self._title)}[/]")
        self._detail(why, "red")

    def say(self, line: str) -> None:
        # Not wrapped: a command that is copied must be one line.
        self._console.print(inert_line(line), markup=False, highlight=False, soft_wrap=True)

    def _detail(self, line: str, style: str) -> None:
        text = f"  {inert_line(line)}"
        self._console.print(text, style=style, markup=False, highlight=False)

    def _rest(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


@click.command(
    epilog="""\b
Examples:
  skerry demo                      the example scenario, up until Ctrl-C
  skerry demo --once               the same, torn down at once; exit code 0 if all held
  skerry demo --story server       a tour of the API server alone
"""
)
@click.option("--once", is_flag=True, help="Tear down and exit when the story is over.")
@click.option(
    "--story",
    type=click.Choice(["edge", "server"]),
    default="edge",
    show_default=True,
    help="Two edges and two workloads, or a tour of the API server alone.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port of the hub or server; 0 takes any free one.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder to keep everything in; by default one that is removed at the end.",
)
@click.option(
    "--ports",
    type=click.IntRange(1, 65535),
    nargs=3,
    default=(8081, 8082, 8083),
    show_default=True,
    help="Where the pages of florin, guilder's special and guilder's common workload answer.",
)
def demo(
    once: bool, story: str, port: int, data_dir: Path | None, ports: tuple[int, int, int]
) -> None:
    """Play the example scenario: two edge clusters, two workloads, three pages.

    Everything stays up until Ctrl-C, to be used with kubectl and curl. With --once the exit code
    is 0 only if every stage held.
    """
    if story != "server":
        _check_machine([*ports, port])
    _check_folder(data_dir)
    log.configure(verbosity=-1)
    narrator = _narrator()
    with demo_home(data_dir, lambda left: Scenario(left).stop(), narrator.say) as home:
        if story == "server":
            held = _played(home, port, narrator, once=once)
        else:
            scenario = Scenario(home, Ports(*ports), port)
            held = asyncio.run(run_scenario(scenario, narrator, once=once))
    sys.exit(0 if held else 1)


def _check_machine(ports: Sequence[int]) -> None:
    """Say in one sentence what the scenario cannot do without."""
    if sys.platform != "linux":
        raise click.ClickException(
            f"the edges of the demo run on Linux and this is {sys.platform}: use a Linux machine, "
            "or skerry demo --story server"
        )
    named = [port for port in ports if port]
    twice = sorted({str(port) for port in named if named.count(port) > 1})
    if twice:
        raise click.UsageError(f"port {', '.join(twice)} is named twice; each page needs its own")
    problems = [(port, obstacle("127.0.0.1", port)) for port in named]
    reasons = [f"port {port} {problem}" for port, problem in problems if problem]
    if reasons:
        raise click.ClickException(
            f"{', '.join(reasons)}: name three others with --ports "
            '(make demo PORTS="9081 9082 9083")'
        )


def _check_folder(data_dir: Path | None) -> None:
    """Say in one sentence why a folder cannot be the demo's, before anything starts."""
    if data_dir is None:
        return
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if any(data_dir.iterdir()):
            raise click.ClickException(
                f"{data_dir} holds the state of an earlier run: remove it, or name another folder"
            )
    except OSError as error:
        raise click.ClickException(
            f"cannot keep data in {data_dir}: {error.strerror}; name another with --data-dir"
        ) from error


def _played(data_dir: Path, port: int, narrator: Narrator, *, once: bool) -> bool:
    settings = ServerSettings(
        data_dir=data_dir, port=port, store=StoreSettings(path=data_dir / "store.db")
    )
    try:
        return asyncio.run(run_demo(settings, narrator, once=once))
    except StartError as error:
        raise click.ClickException(str(error)) from error


def _narrator() -> Narrator:
    console = Console()
    return TerminalNarrator(console) if console.is_terminal else PlainNarrator()
