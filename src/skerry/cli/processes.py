"""--processes: a server as several processes behind one port."""

from __future__ import annotations

from typing import Protocol

import click

from skerry.app.process_group import run_processes
from skerry.app.process_member import ProcessMember
from skerry.app.settings import ServerSettings
from skerry.app.standalone import StartError
from skerry.cli.service import Announce
from skerry.kit.log import report_failure

# More than any machine has cores for; each takes its share of every limit, and of memory its own.
_MAX_PROCESSES = 64

processes_flag = click.option(
    "--processes",
    type=click.IntRange(1, _MAX_PROCESSES),
    default=1,
    show_default=True,
    help="Equal processes that serve behind the one port, for machines with more cores; needs "
    "--store etcd.",
)

_WHY_NOT = {
    "sqlite": "SQLite is written by one process, which holds the file and hands out every revision "
    "(skerry backup and skerry restore take what is there to etcd)",
    "memory": "what is kept in memory is one process's own",
}


class Serve(Protocol):
    """Runs a server to its end, alone or as a member of a group."""

    def __call__(self, announce: Announce, member: ProcessMember | None = None) -> None: ...


def check_processes(settings: ServerSettings, processes: int) -> None:
    """Refuse, as a wrong use of flags, what several processes cannot do together."""
    if processes == 1:
        return
    why = _WHY_NOT.get(settings.store.kind)
    if why is not None:
        raise click.UsageError(f"--processes {processes} needs --store etcd: {why}")
    if settings.tunnel:
        raise click.UsageError(
            f"--tunnel needs --processes 1, not {processes}: a tunnel ends in the process that its "
            "syncer reached, and who asks for logs may reach another"
        )


def run_in_processes(
    name: str, settings: ServerSettings, processes: int, serve: Serve, announce: Announce
) -> int:
    """Run a server as one process, or as the supervisor of several; return the exit code."""
    if processes == 1:
        serve(announce)
        return 0

    def member_serves(member: ProcessMember, ready: Announce) -> int:
        try:
            serve(ready, member)
        except StartError as error:
            report_failure(name, error)
            return 1
        return 0

    return run_processes(settings, processes, member_serves, announce)
