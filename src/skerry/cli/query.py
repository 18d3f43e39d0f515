"""skerry query: ask the whole fleet one question, once or for as long as one looks."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click
import yaml

from skerry.api.objects import Object
from skerry.app.asking import Asking, opened
from skerry.cli.columns import print_columns
from skerry.cli.common_flags import output_flag
from skerry.cli.hub_flags import answer_or_exit, finds_hub, hub_settings
from skerry.cli.printing import clear_screen, show_json, show_lines, show_text
from skerry.kit.ids import SystemIds
from skerry.logic.fleet.query.asking import Asked, AskingError, flags_of, spec_of
from skerry.logic.fleet.query.text import as_csv, notes, table

_IMPERFECT = 3


@click.command(
    epilog="""\b
Examples:
  skerry query deployments -n shop --by location.labels.region
  skerry query deployments --filter 'report.healthy != "True"' --select location.name \\
      --select report.reason
  skerry query deployments -n shop --by location.labels.region --agg count \\
      --agg p99:status.startMillis --top 5:status.restarts
  skerry query --rows Destinations --by report.healthy
  skerry query --file q.yaml -o csv > answer.csv
  skerry query deployments --watch

\b
Exit codes:
  0  the question was answered
  1  there is no answer: no hub to ask, a question it refuses, or no controllers that run
  2  the command was called in a way it does not understand
  3  with --exit-code: some rows have errors, or are not shown
"""
)
@click.argument("resource", required=False, default="")
@click.option("-n", "--namespace", "namespaces", multiple=True, help="Namespaces; else all.")
@click.option("--name", "names", multiple=True, help="Names of objects; else all.")
@click.option("--placement", "placements", multiple=True, help="EdgePlacements; else all.")
@click.option(
    "--rows",
    type=click.Choice(["Copies", "Upsynced", "Destinations"]),
    default="Copies",
    show_default=True,
    help="What one row is.",
)
@click.option("--filter", "filter_", default="", metavar="EXPR", help="Count rows where it holds.")
@click.option("--by", multiple=True, metavar="[NAME=]EXPR", help="Group rows by its value.")
@click.option(
    "--agg",
    "aggregates",
    multiple=True,
    metavar="[NAME=]FN[:EXPR]",
    help="count, sum:EXPR, min:EXPR, max:EXPR, avg:EXPR or p99:EXPR.  [default: count]",
)
@click.option("--top", multiple=True, metavar="[NAME=]K:EXPR", help="Show the K greatest values.")
@click.option("--show", default="", metavar="EXPR", help="What --top shows beside each value.")
@click.option("--select", multiple=True, metavar="[NAME=]EXPR", help="Show rows, not groups.")
@click.option("--having", default="", metavar="EXPR", help="Show groups where it holds.")
@click.option("--order-by", multiple=True, metavar="COLUMN[:desc]", help="Order of the result.")
@click.option("--limit", type=click.IntRange(1, 1000), help="Rows to show.  [default: 100]")
@click.option("--stale-after", default="", metavar="DURATION", help="Count older reports as stale.")
@click.option(
    "-f",
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="A StatusQuery to ask instead; it is asked under another name, and does not stay.",
)
@click.option("-w", "--watch", is_flag=True, help="Stay, and show each new answer.")
@click.option("--exit-code", is_flag=True, help="Exit with 3 when an answer is not whole.")
@output_flag("table", "json", "csv")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the answer.",
)
@finds_hub
def query(
    *,
    resource: str,
    file: str | None,
    watch: bool,
    exit_code: bool,
    output: str,
    timeout: float,
    filter_: str,
    **flags: Any,
) -> None:
    """Ask the current workspace's copies at all edges one question, in CEL.

    An expression sees status, obj, report (delivered, healthy, reason, time), location (name,
    cluster, labels), syncTarget (name, ready, labels) and placement.
    """
    fields = set(Asked.__dataclass_fields__) & flags.keys()
    typed = Asked(rows=flags["rows"], filter=filter_, **{n: flags[n] for n in fields - {"rows"}})
    if file and (beside := flags_of(typed)):
        raise click.UsageError(f"--file is the whole question: leave {', '.join(beside)} out")
    try:
        spec = _from_file(file) if file else spec_of(typed)
    except AskingError as error:
        raise click.UsageError(str(error)) from error
    if not file and not resource and typed.rows != "Destinations":
        raise click.UsageError("name a resource, such as deployments, or give --file")
    imperfect = False

    async def ask() -> None:
        nonlocal imperfect
        async with opened(hub_settings(flags), SystemIds()) as asking:
            whole = await _resolved(asking, spec, resource)
            answers: AsyncIterator[Object] = asking.answers(whole, watch=watch, seconds=timeout)
            async with aclosing(answers) as found:  # type: ignore[type-var]
                async for status in found:
                    _show(status, output, clear=watch and sys.stdout.isatty())
                    imperfect = bool(status.get("rowsOmitted") or status["errors"]["rows"])

    answer_or_exit("query", ask)
    if exit_code and imperfect:
        sys.exit(_IMPERFECT)


async def _resolved(asking: Asking, spec: Object, resource: str) -> Object:
    if not resource:
        return spec
    group, name = await asking.resource(resource)
    return {**spec, "from": {**spec["from"], "apiGroup": group, "resources": [name]}}


def _from_file(path: str) -> Object:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
        found = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise AskingError(f"--file {path}: {error}") from error
    spec = found.get("spec") if isinstance(found, dict) else None
    if not isinstance(spec, dict):
        raise AskingError(f"--file {path}: want one StatusQuery with a spec")
    return spec


def _show(status: Object, output: str, *, clear: bool) -> None:
    if clear:
        clear_screen()
    if output == "json":
        show_json(status, indent=None if clear else 2)
    elif output == "csv":
        show_text(as_csv(status))
    else:
        print_columns(table(status))
    if output != "json":
        show_lines(notes(status), error=True)
    sys.stdout.flush()
