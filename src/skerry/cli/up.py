"""skerry up, down and status: a hub and its controllers as supervised processes."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path

import click

from skerry.app.stack import Stack, StackError

_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".skerry"),
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
  skerry up --init                   in the foreground, until Ctrl-C
  skerry up --init --detach          in the background; see skerry status, skerry down
  skerry up --detach --port 7443     further flags are those of skerry hub
""",
)
@_DATA_DIR
@click.option(
    "--init", is_flag=True, help="Also make root:espw, and run the edge controllers there."
)
@click.option("--espw-path", default="", help="Provider workspace of the controllers, if another.")
@click.option("--detach", is_flag=True, help="Return when the hub answers.")
@click.argument("hub_flags", nargs=-1, type=click.UNPROCESSED)
def up(
    data_dir: Path, init: bool, espw_path: str, detach: bool, hub_flags: tuple[str, ...]
) -> None:
    """Run a hub and its controllers, started again whenever they fail."""
    stack = Stack(data_dir.resolve())
    provider = espw_path or ("root:espw" if init else "")
    try:
        stack.up([*(["--init"] if init else []), *hub_flags], provider)
    except StackError as error:
        print(f"skerry up: {error}", file=sys.stderr)
        sys.exit(1)
    print(f"skerry up ready at {stack.url} (kubeconfig {stack.kubeconfig})", flush=True)
    if detach:
        return
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    stack.down()


@click.command(epilog="\b\nExample:\n  skerry down --data-dir .skerry\n")
@_DATA_DIR
def down(data_dir: Path) -> None:
    """Stop a hub and its controllers; what they keep stays."""
    Stack(data_dir.resolve()).down()


@click.command(epilog="\b\nExample:\n  skerry status -o json\n")
@_DATA_DIR
@_OUTPUT
def status(data_dir: Path, output: str) -> None:
    """Say what runs. Exits 1 when the hub does not."""
    stack = Stack(data_dir.resolve())
    parts = stack.parts()
    if output == "json":
        print(json.dumps({"url": stack.url, "parts": [asdict(part) for part in parts]}))
    else:
        for part in parts:
            state = f"running (pid {part.pid})" if part.running else "not running"
            print(f"{part.name:12} {state}")
        if stack.url:
            print(f"{'url':12} {stack.url}")
    sys.exit(0 if parts[0].running else 1)
