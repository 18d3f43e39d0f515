"""``kubectl kcp``: bind exports and compute, snapshot definitions, and everything of ``ws``."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.cli import workspace
from skerry.cli.extras import require_extra
from skerry.cli.flags import Parsed, UsageError, parse
from skerry.cli.hub_client import RequestFailed
from skerry.cli.printing import show, show_text
from skerry.cli.session import CommandError, Session
from skerry.logic.machinery.durations import DurationError, duration_of

HELP = """Kubectl plugin for kcp

Usage:
  kubectl kcp [command]

Available Commands:
  bind apiexport <workspace_path:apiexport-name> [--name NAME] [--timeout 30s]
  bind compute <location workspace> [--apiexports a,b] [--location-selectors a,b]
               [--namespace-selector S] [--name NAME] [--timeout 30s]
  crd snapshot -f FILE --prefix PREFIX
  workspace, ws    Manages KCP workspaces
"""
_BINDINGS = "apis/apis.kcp.io/v1alpha1/apibindings"
_PLACEMENTS = "apis/scheduling.kcp.io/v1alpha1/placements"
_COMPUTE = "root:compute:kubernetes"
_POLL_SECONDS = 0.2
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# The name of an object has at most 253 characters; a blank and a hash of 8 follow the export's.
_MAX_PREFIX = 253 - 9


def bind_apiexport(session: Session, reference: str, flags: Parsed) -> None:
    """Bind one export into the current workspace."""
    path, _, export = reference.rpartition(":")
    if not reference:
        raise CommandError(
            "`root:ws:apiexport_object` reference to bind is required as an argument"
        )
    if not path:
        raise CommandError(
            "fully qualified reference to workspace where APIExport exists is required. The "
            "format is `<logical-cluster-name>:<apiexport>` or "
            "`<full>:<path>:<to>:<apiexport>`"
        )
    name = flags.value("name") or export
    _, current = session.base_and_path()
    url = session.url(current, _BINDINGS)
    binding = session.client.post(url, _binding(name, path, export))
    show(f"apibinding {name} created. Waiting to successfully bind ...", flush=True)
    timeout = seconds(flags.value("timeout", "30s"))
    if not _polled(lambda: _bound(session, url, name, binding), timeout):
        raise CommandError(f"could not bind {name}: timed out waiting for the condition")
    show(f"{name} created and bound.")


def _binding(name: str, path: str, export: str) -> dict[str, Any]:
    reference = {"name": export, **({"path": path} if path else {})}
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": name},
        "spec": {"reference": {"export": reference}},
    }


def _bound(session: Session, url: str, name: str, known: dict[str, Any]) -> bool:
    """Tell whether a binding is bound; looks again only if it was not."""
    if (known.get("status") or {}).get("phase") != "Bound":
        known.update(session.client.get(f"{url}/{name}"))
    return (known.get("status") or {}).get("phase") == "Bound"


def bind_compute(session: Session, location: str, flags: Parsed) -> None:
    """Bind compute exports and place workload on the locations of a workspace."""
    _, current = session.base_and_path()
    timeout = seconds(flags.value("timeout", "30s"))
    url = session.url(current, _BINDINGS)
    bindings = _bind_missing(session, url, _listed(flags.value("apiexports", _COMPUTE)))
    for name, binding in bindings.items():
        if not _polled(lambda n=name, b=binding: _bound(session, url, n, b), timeout):  # type: ignore[misc]  # defaults bind now
            raise CommandError(f"APIBindings not ready: {_binding_problem(binding)}")
    _place(session, current, location, flags, timeout)


def _bind_missing(session: Session, url: str, wanted: list[str]) -> dict[str, dict[str, Any]]:
    bound = set()
    for item in session.client.get(url).get("items") or []:
        export = item["spec"]["reference"].get("export") or {}
        bound.add(f"{export.get('path', '')}:{export.get('name', '')}")
    created = {}
    for reference in wanted:
        if reference in bound:
            continue
        path, _, export = reference.rpartition(":")
        name = f"{export[:_MAX_PREFIX]}-{_hash(f'/clusters/{path}')}"
        try:
            created[name] = session.client.post(url, _binding(name, path, export))
        except RequestFailed as error:
            if error.reason != "AlreadyExists":
                raise CommandError(f'failed binding APIExport "{reference}": {error}') from error
            created[name] = session.client.get(f"{url}/{name}")
        show(f'Binding APIExport "{reference}".', error=True)
    return created


def _binding_problem(binding: Mapping[str, Any]) -> str:
    export = binding["spec"]["reference"]["export"]
    to = f"{export.get('path', '')}:{export['name']}"
    why = "unknown reason"
    for kind in ("InitialBindingCompleted", "APIExportValid"):
        status, message = _condition(binding, kind)
        if status == "False":
            why = message
            break
    name = binding["metadata"]["name"]
    return f'APIBinding {name} is not bound to APIExport "APIExport {to}" yet: {why}'


def _condition(obj: Mapping[str, Any], kind: str) -> tuple[str, str]:
    for condition in (obj.get("status") or {}).get("conditions") or []:
        if condition["type"] == kind:
            return condition["status"], condition.get("message", "")
    return "", ""


def _place(session: Session, current: str, location: str, flags: Parsed, timeout: float) -> None:
    namespaces = flags.value("namespace-selector")
    locations = _listed(flags.value("location-selectors")) or [""]
    name = flags.value("name") or f"placement-{_hash(namespaces + ','.join(locations) + location)}"
    placement = {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Placement",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": workspace.selector_of(namespaces),
            "locationSelectors": [workspace.selector_of(text) for text in locations],
            "locationWorkspace": location,
            "locationResource": SYNC_TARGETS._asdict(),
        },
    }
    url = session.url(current, _PLACEMENTS)
    try:
        session.client.post(url, placement)
        show(f"placement {name} created.")
    except RequestFailed as error:
        if error.reason != "AlreadyExists":
            raise
        show(f"placement {name} already exists.")
    problem = [""]

    def ready() -> bool:
        problem[0] = _placement_problem(session.client.get(f"{url}/{name}"))
        return not problem[0]

    if not _polled(ready, timeout):
        raise CommandError(f'placement "{name}" not ready: {problem[0]}')
    show(f'Placement "{name}" is ready.', error=True)


def _placement_problem(placement: Mapping[str, Any]) -> str:
    for kind, word in (("Scheduled", "scheduled"), ("Ready", "ready")):
        status, message = _condition(placement, kind)
        if status != "True":
            return f"placement is not {word}" + (f": {message}" if message else "")
    return ""


def crd_snapshot(flags: Parsed) -> None:
    """Print the APIResourceSchemas that offer the types of CustomResourceDefinitions."""
    require_extra("kubectl kcp crd snapshot", "hub")
    import yaml

    from skerry.logic.machinery.workspaces.schemas import schema_object

    if not flags.value("filename"):
        raise CommandError("--filename is required")
    if not flags.value("prefix"):
        raise CommandError("--prefix is required")
    source = flags.value("filename")
    text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    for definition in yaml.safe_load_all(text):
        if definition:
            schema = schema_object(definition, flags.value("prefix"))
            show_text("---\n" + yaml.safe_dump(schema, sort_keys=False))


def _hash(text: str) -> str:
    number, found = int.from_bytes(hashlib.sha224(text.encode()).digest(), "big"), ""
    while number:
        number, rest = divmod(number, 36)
        found = _DIGITS[rest] + found
    return found[:8]


def _listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def seconds(text: str) -> float:
    """Return a duration such as ``1m30s`` or ``500ms`` in seconds."""
    try:
        return duration_of(text).total_seconds()
    except DurationError as error:
        raise UsageError(f'invalid argument "{text}" for "--timeout" flag: {error}') from error


def _polled(done: Callable[[], bool], timeout: float) -> bool:
    left = int(timeout / _POLL_SECONDS)
    while not done():
        if left <= 0:
            return False
        left -= 1
        time.sleep(_POLL_SECONDS)
    return True


def run(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Do what the command line says."""
    if words and words[0] in ("workspace", "ws", "workspaces"):
        workspace.run(words[1:], environment)
        return
    own = {
        "name": False,
        "timeout": False,
        "apiexports": False,
        "location-selectors": False,
        "namespace-selector": False,
        "filename": False,
        "prefix": False,
    }
    flags = parse(words, own, {"f": "filename"})
    command = tuple(flags.arguments[:2])
    if flags.on("help") or command not in (
        ("bind", "apiexport"),
        ("bind", "compute"),
        ("crd", "snapshot"),
    ):
        if command and command[0] not in ("bind", "crd"):
            raise UsageError(f'unknown command "{command[0]}" for "kubectl-kcp"')
        show_text(f"{HELP}\n")
        return
    if command == ("crd", "snapshot"):
        crd_snapshot(flags)
        return
    argument = flags.arguments[2] if len(flags.arguments) > 2 else ""
    if command == ("bind", "compute") and len(flags.arguments) != 3:
        raise CommandError("a location workspace should be specified")
    session = Session.open(flags, environment)
    {"apiexport": bind_apiexport, "compute": bind_compute}[command[1]](session, argument, flags)


def main() -> None:
    """Run ``kubectl kcp``."""
    # A kubectl plugin finds the kubeconfig by the environment, as kubectl is.
    sys.exit(workspace.call(sys.argv[1:], os.environ, run, "error"))  # noqa: TID251
