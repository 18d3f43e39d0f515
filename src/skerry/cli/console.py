"""skerry console: sign in to the hub's console in a browser."""

from __future__ import annotations

import contextlib
import webbrowser
from typing import Any

import click

from skerry.app.console_login import console_sessions, end_session, login_link, proxied
from skerry.cli.columns import print_columns
from skerry.cli.common_flags import output_flag
from skerry.cli.hub_flags import answer_or_exit, finds_hub, hub_settings
from skerry.cli.printing import show, show_json


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  skerry console                     sign in and open the browser
  skerry console --no-open           print the link alone; it is good once, for a minute
  skerry console --proxy             by http://127.0.0.1, until Ctrl-C
  skerry console sessions            who is signed in
  skerry console revoke ID           sign a browser out
""",
)
@click.option("--open/--no-open", "opens", default=True, help="Open the link in a browser.")
@click.option(
    "--proxy",
    is_flag=True,
    help="Lead there by http on this machine, for browsers that do not know the hub's authority.",
)
@click.option(
    "--proxy-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port of --proxy; 0 takes any free one.",
)
@finds_hub
@click.pass_context
def console(
    caller: click.Context, /, opens: bool, proxy: bool, proxy_port: int, **flags: Any
) -> None:
    """Sign in to the console of the hub that the kubeconfig leads to.

    The link that is printed signs in as the user of the kubeconfig, once and within a minute. The
    session ends with that credential, after eight hours, or after thirty minutes without use.
    """
    if caller.invoked_subcommand is not None:
        return
    settings = hub_settings(flags)

    def show_link(address: str) -> None:
        show(f"sign in: {address}", flush=True)
        if opens and not webbrowser.open(address):
            show("No browser opened: open that address within a minute.", flush=True)

    if proxy:
        with contextlib.suppress(KeyboardInterrupt):
            answer_or_exit("console", lambda: proxied(settings, proxy_port, show_link), OSError)
        return
    link = answer_or_exit("console", lambda: login_link(settings))
    show(f"console: {link.url}/console/fleet")
    show_link(link.address)


@console.command("sessions")
@output_flag("text", "json")
@finds_hub
def sessions(output: str, **flags: Any) -> None:
    """List the sessions of the console: your own, or all for the hub's administrators."""
    settings = hub_settings(flags)
    found = answer_or_exit("console", lambda: console_sessions(settings))
    if output == "json":
        show_json(found)
        return
    rows = [[each[key] for key in ("id", "user", "address", "began", "ends")] for each in found]
    print_columns([["ID", "USER", "ADDRESS", "BEGAN", "ENDS"], *rows])


@console.command("revoke")
@click.argument("session")
@finds_hub
def revoke(session: str, **flags: Any) -> None:
    """End the session ID; whatever is open in it closes at once."""
    settings = hub_settings(flags)
    answer_or_exit("console", lambda: end_session(settings, session))
    show(f"session {session} ended")
