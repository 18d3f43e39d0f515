"""skerry up, down and status: a hub and its controllers as supervised processes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from skerry.api.edge import USUAL_PROVIDER
from skerry.app.demo_homes import running_demos
from skerry.app.stack import HUB_CONTEXT, Part, Stack, StackError, log_format
from skerry.app.supervised import Interrupted, stop_signals
from skerry.cli.printing import show, show_json
from skerry.kit.log import announce, configure, report_failure
from skerry.wire.kubeconfig import KubeconfigError

# What a shell says of a program that Ctrl-C has ended.
INTERRUPTED = 130

_USUAL_DIR = Path(".skerry")
_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=_USUAL_DIR,
    show_default=True,
    help="Folder of the hub: store, certificates, kubeconfig, logs.",
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Form of the answer.",
)


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Examples:
  skerry up                          in the foreground, until Ctrl-C
  skerry up --init --detach          in the background; see skerry status, skerry down
  skerry up --detach --port 7443     further flags are those of skerry hub
""",
)
@_DATA_DIR
@click.option(
    "--init",
    is_flag=True,
    help="Also make the provider workspace root:espw and the finer compute exports.",
)
@click.option(
    "--espw-path",
    default=USUAL_PROVIDER,
    show_default=True,
    help="Provider workspace of the controllers, which wait until there is one.",
)
@click.option(
    "--console/--no-console",
    default=True,
    show_default=True,
    help="Serve the console to browsers on this machine.",
)
@click.option("--detach", is_flag=True, help="Return when the hub answers.")
@click.argument("hub_flags", nargs=-1, type=click.UNPROCESSED)
def up(
    data_dir: Path,
    init: bool,
    espw_path: str,
    console: bool,
    detach: bool,
    hub_flags: tuple[str, ...],
) -> None:
    """Run a hub and its controllers, started again whenever they fail."""
    if log_format(hub_flags) == "json":
        configure(format="json")
    stack = Stack(data_dir.resolve())
    with reporting(), contextlib.ExitStack() as held:
        with stack.alone():
            stop = held.enter_context(stop_signals())
            flags = [*(["--init"] if init else []), *hub_flags]
            begun = stack.up(flags, ["--espw-path", espw_path], stop, console=console)
        if init and not begun:
            _populate(stack)
        beside = f", console at {stack.console}" if stack.console else ""
        announce(f"skerry up ready at {stack.url} (kubeconfig {stack.kubeconfig}){beside}")
        if detach:
            return
        asked = stack.wait(stop)
        with stack.alone():
            stack.down()
        if not asked:
            raise StackError("stopped, because another command or program ended a part of it")


def _populate(stack: Stack) -> None:
    """Do what --init asks for at a hub that runs already, and may have been started without."""
    # Only here: what these load is of no use to the other commands.
    from skerry.api.errors import ApiError
    from skerry.app.edge_identity import open_hub
    from skerry.app.inventory import CommandFailed
    from skerry.app.kubestellar import populate
    from skerry.runtime.transport import TransportError

    async def populated() -> None:
        hub = open_hub([stack.kubeconfig], HUB_CONTEXT)
        try:
            await populate(hub)
        finally:
            await hub.client.transport.close()

    try:
        asyncio.run(populated())
    except (ApiError, CommandFailed, KubeconfigError, TransportError, TimeoutError) as error:
        raise StackError(f"the hub runs, but --init could not be done: {error}") from error


@contextlib.contextmanager
def reporting() -> Iterator[None]:
    """Turn what went wrong into one line and an exit code."""
    try:
        yield
    except Interrupted:
        report_failure("skerry up", "interrupted before the hub was ready; nothing runs")
        sys.exit(INTERRUPTED)
    except StackError as error:
        report_failure("skerry up", error)
        sys.exit(1)


@click.command(epilog="\b\nExample:\n  skerry down --data-dir .skerry\n")
@_DATA_DIR
def down(data_dir: Path) -> None:
    """Stop a hub and its controllers; what they keep stays."""
    stack = Stack(data_dir.resolve())
    if not data_dir.exists():
        show(f"skerry down: there is no folder {data_dir}; nothing to stop", error=True)
        sys.exit(1)
    with reporting(), stack.alone():
        stack.down()


@click.command(epilog="\b\nExample:\n  skerry status -o json\n")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the hub  [default: .skerry, and those of demos that run]",
)
@_OUTPUT
def status(data_dir: Path | None, output: str) -> None:
    """Say what runs. Exits 1 when the hub does not."""
    stack = Stack((data_dir or _USUAL_DIR).resolve())
    demos = [Stack(place / "hub") for place in running_demos()] if data_dir is None else []
    if output == "json":
        shown = [{"directory": str(demo.data_dir), **_described(demo)} for demo in demos]
        show_json({**_described(stack), "demos": shown}, indent=None)
    else:
        if stack.data_dir.exists() or not demos:
            _print_stack(stack)
        for demo in demos:
            show(f"{'demo':12} {demo.data_dir.parent}")
            _print_stack(demo)
    known = [stack] if stack.data_dir.exists() or not demos else demos
    sys.exit(0 if all(each.parts()[0].running for each in known) else 1)


def _described(stack: Stack) -> dict[str, object]:
    console = {"console": stack.console} if stack.console else {}
    return {"url": stack.url, **console, "parts": [asdict(part) for part in stack.parts()]}


def _print_stack(stack: Stack) -> None:
    for part in stack.parts():
        show(f"{part.name:12} {_state(part)}")
    if stack.url:
        show(f"{'url':12} {stack.url}")
    if stack.console:
        show(f"{'console':12} {stack.console}")


def _state(part: Part) -> str:
    if not part.running:
        return "not running: it ends as soon as it starts" if part.supervised else "not running"
    watched = "" if part.supervised else ", not supervised"
    return f"running (pid {part.pid}{watched})"
