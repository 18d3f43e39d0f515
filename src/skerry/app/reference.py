"""Reference pages made from the code they describe.

``skerry docs --write docs/reference`` writes them; a test keeps them equal to the code.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import click
from prometheus_client import CollectorRegistry

from skerry.api.edge import NOT_ENFORCED
from skerry.api.edge_marks import MARKS
from skerry.api.kcp import edge
from skerry.api.kcp.building import Raw
from skerry.app import settings as server_settings
from skerry.app.process_beats import RestartCounts
from skerry.app.process_metrics import register_restarts
from skerry.app.scheduler_reference import configuration_page
from skerry.logic.machinery import oidc as oidc_settings
from skerry.logic.machinery.builtin import builtin_resources
from skerry.logic.machinery.resource import Resource
from skerry.logic.workloads import not_enforced
from skerry.runtime.metrics import RuntimeMetrics
from skerry.scheduler.metrics import SchedulerMetrics
from skerry.server.admission.webhook_metrics import WebhookMetrics
from skerry.server.flow import FairFlow
from skerry.server.metrics import ServerMetrics
from skerry.store import open as store_settings

_HEAD = "<!-- Made by `skerry docs --write docs/reference`; edit the code instead. -->\n"


def pages(commands: click.Group) -> dict[str, str]:
    """Return every generated page by file name."""
    return {
        "api-resources.md": _resources(builtin_resources()),
        "commands.md": _commands(commands),
        "settings.md": _settings(),
        "metrics.md": _metrics(),
        "edge-api.md": _edge_api(),
        "scheduler-configuration.md": f"{_HEAD}\n{configuration_page()}",
        "not-enforced.md": _not_enforced(),
        "annotations.md": _annotations(),
    }


def write(directory: Path, commands: click.Group) -> None:
    """Write the pages into *directory*."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages(commands).items():
        (directory / name).write_text(text)


def _resources(resources: Sequence[Resource]) -> str:
    lines = [
        _HEAD,
        "# Built-in resources\n",
        "What the plain server serves besides custom resources. *Rules* tells what it knows of a",
        "kind beyond its schema.\n",
        "| group/version | resource | kind | scope | verbs | subresources | rules |",
        "|---|---|---|---|---|---|---|",
    ]
    for resource in resources:
        info = resource.info
        scope = "namespaced" if info.namespaced else "cluster"
        subs = ", ".join(sub.name for sub in info.subresources) or "-"
        lines.append(
            f"| {info.api_version} | {info.resource} | {info.kind} | {scope} | "
            f"{' '.join(info.verbs)} | {subs} | {', '.join(_rules(resource)) or 'schema only'} |"
        )
    return "\n".join(lines) + "\n"


def _rules(resource: Resource) -> Iterator[str]:
    plain = Resource(resource.info, resource.schema, resource.storage_version)
    for name, word in (
        ("default", "defaulted"),
        ("validate_create", "validated"),
        ("prepare_create", "prepared"),
        ("convert", "converted"),
    ):
        if getattr(resource, name) != getattr(plain, name):
            yield word


def _commands(group: click.Group) -> str:
    lines = [_HEAD, "# Commands\n"]
    for path, command in _walk(group, (group.name or "skerry",)):
        # Which names the help option has depends on who asked first; it is left out.
        shown = copy.copy(command)
        shown.add_help_option = False
        context = click.Context(shown, info_name=" ".join(path), terminal_width=96)
        lines += [f"## {' '.join(path)}\n", "```", shown.get_help(context), "```\n"]
    return "\n".join(lines)


def _walk(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _walk(found, (*path, name))


def _settings() -> str:
    lines = [_HEAD, "# Settings\n"]
    for module, name in (
        (server_settings, "ServerSettings"),
        (store_settings, "StoreSettings"),
        (oidc_settings, "OidcSettings"),
    ):
        lines += [f"## {name}\n", "| setting | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{field}` | `{default}` | {' '.join(meaning.split())} |"
            for field, default, meaning in _fields(module, name)
        ]
        lines.append("")
    return "\n".join(lines)


def _fields(module: ModuleType, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the fields of a settings class with their defaults and docstrings."""
    tree = ast.parse(inspect.getsource(module))
    body = next(
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name
    )
    for field, after in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = str(after.value.value)
        yield field.target.id, ast.unparse(field.value) if field.value else "", text


def _metrics() -> str:
    lines = [_HEAD, "# Metrics\n"]
    server, runtime = CollectorRegistry(), CollectorRegistry()
    ServerMetrics(server, FairFlow())
    WebhookMetrics(server)
    register_restarts(server, RestartCounts())
    RuntimeMetrics(runtime)
    scheduler = CollectorRegistry()
    scheduler.register(SchedulerMetrics())
    for title, registry in (
        ("Server", server),
        ("Controllers", runtime),
        ("Scheduler", scheduler),
    ):
        lines += [f"## {title}\n", "| name | type | meaning |", "|---|---|---|"]
        lines += sorted(
            f"| `{metric.name}` | {metric.type} | {metric.documentation} |"
            for metric in registry.collect()
        )
        lines.append("")
    return "\n".join(lines)


def _edge_api() -> str:
    lines = [_HEAD, f"# The API group `{edge.GROUP}`\n"]
    for definition in edge.definitions():
        spec = definition["spec"]
        version = spec["versions"][0]
        schema = version["schema"]["openAPIV3Schema"]
        short = ", ".join(spec["names"].get("shortNames", ())) or "-"
        lines += [
            f"## {spec['names']['kind']}\n",
            f"{schema['description']}\n",
            f"`{spec['names']['plural']}`, short name {short}, {spec['scope']}.\n",
            "| field | type | meaning |",
            "|---|---|---|",
        ]
        for name in schema["properties"]:
            if name not in ("apiVersion", "kind", "metadata"):
                required = name in schema.get("required", ())
                lines += _described_fields(name, schema["properties"][name], required=required)
        lines.append("")
    return "\n".join(lines)


def _annotations() -> str:
    lines = [
        _HEAD,
        "# Labels and annotations of the edge API\n",
        "Those set by people ask for something. Controllers and syncers set the others; whoever",
        "else changes those has them put right, or is refused. All are annotations but the two",
        "that say so. Copies leave them behind on their way to an edge.\n",
    ]
    for writer, title in (
        ("people", "Set by people"),
        ("controllers", "Set by the hub's controllers"),
        ("syncer", "Set by syncers"),
    ):
        lines += [f"## {title}\n", "| name | on | value | meaning |", "|---|---|---|---|"]
        for mark in MARKS:
            if mark.by == writer:
                name = f"`{mark.key}`" + (" (label)" if mark.label else "")
                lines.append(f"| {name} | {mark.on} | {mark.value} | {mark.meaning} |")
        lines.append("")
    return "\n".join(lines)


def _not_enforced() -> str:
    lines = [
        _HEAD,
        "# What an embedded edge does not enforce\n",
        "An edge of `skerry edge create` accepts these and does not act upon them. Each such",
        f"object has the annotation `{NOT_ENFORCED}`, a Warning Event",
        f"`{not_enforced.REASON}` and, where the kind has one, a condition. The syncer brings",
        "it up as the cause, so StatusSummaries, `skerry explain` and conditions at the hub say it",
        "to the owner. Another cluster's operator may set the annotation for the same end.\n",
        "On a cluster that enforces them most of these have no health either, and no edge will",
        "come to, so they hold neither `Healthy` nor `Ready` of a placement back: health is as the",
        f"object's state has it, else `Unknown` for the reason `{not_enforced.REASON}`. Only a",
        "Service that waits for its load balancer waits for ever, as on any cluster without.\n",
        "| kind | field | instead | condition |",
        "|---|---|---|---|",
    ]
    for row in not_enforced.TABLE:
        condition = "`: ".join(row.condition) if row.condition else ""
        said = f"`{condition}" if condition else "-"
        field = f"`{row.field}`" if row.field else "all"
        lines.append(f"| {row.kind} | {field} | {row.message} | {said} |")
    return "\n".join([*lines, ""])


def _described_fields(path: str, schema: Raw, *, required: bool) -> Iterator[str]:
    """Yield a row for a field and for every field below it."""
    kind = schema.get("type", "any")
    inner = schema
    if kind == "array":
        inner = schema["items"]
        kind = f"list of {inner.get('type', 'any')}"
    meaning = schema.get("description", "") or inner.get("description", "")
    allowed = inner.get("enum")
    if allowed:
        meaning = f"{meaning} One of {', '.join(f'`{each}`' for each in allowed)}."
    mark = " (required)" if required else ""
    yield f"| `{path}`{mark} | {kind} | {' '.join(meaning.split())} |"
    below = f"{path}[]" if schema.get("type") == "array" else path
    if "matchLabels" in inner.get("properties", {}):
        # Label selectors are Kubernetes' own.
        return
    for name, child in inner.get("properties", {}).items():
        yield from _described_fields(
            f"{below}.{name}", child, required=name in inner.get("required", ())
        )
