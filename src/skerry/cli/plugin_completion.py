"""Completion of the kubectl plugins, in the way kubectl asks for it.

To complete ``kubectl ws …`` kubectl runs ``kubectl_complete-ws`` with the words typed so far, the
last of which may be begun or empty. It expects one candidate per line, then a line with a colon
and a number that says what else the shell may offer: 4 is "no files".

Names that only the hub knows are asked for; a hub that does not answer is no error, there is
just nothing to offer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skerry.cli.flags import KUBECONFIG_FLAGS, Parsed, UsageError, parse
from skerry.cli.hub_client import RequestFailed
from skerry.cli.printing import show
from skerry.cli.session import CommandError, Session
from skerry.wire.kubeconfig import KubeconfigError

_NO_FILES = ":4"
_FILES = ":0"
_WORKSPACES = "apis/tenancy.kcp.io/v1alpha1/workspaces"
_SYNC_TARGETS = "apis/workload.kcp.io/v1alpha1/synctargets"
# Flags whose value is the name of a file.
_FILE_FLAGS = frozenset(("--kubeconfig", "--certificate-authority", "--output", "-o", "-f"))

Lookup = Callable[["Asked"], Iterator[str]]


class Asked:
    """One question: the words that stand, and the one that is begun."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self.begun = words[-1] if words else ""
        self.before = list(words[:-1])
        self._environment = environment

    @property
    def arguments(self) -> list[str]:
        """The words before the begun one that are no flags, as far as they can be read."""
        return self._parsed().arguments

    def _parsed(self) -> Parsed:
        try:
            return parse(self.before, {**KUBECONFIG_FLAGS, **_VALUED})
        except UsageError:
            return Parsed([word for word in self.before if not word.startswith("-")])

    def names(self, resource: str, path: str = "") -> Iterator[str]:
        """Yield the names of objects in a workspace, the current one by default."""
        parsed = self._parsed()
        try:
            session = Session.open(parsed, self._environment)
            where = path or parsed.value("imw") or session.base_and_path()[1]
            found: dict[str, Any] = session.client.get(session.url(where, resource))
        except (CommandError, KubeconfigError, RequestFailed, OSError):
            return
        for item in found.get("items") or ():
            yield str(item["metadata"]["name"])


_VALUED = {
    "imw": False,
    "espw": False,
    "with-kube": False,
    "syncer-image": False,
    "output": False,
    "trust": False,
    "type": False,
    "location-selector": False,
    "name": False,
    "timeout": False,
}


def _workspaces(asked: Asked) -> Iterator[str]:
    """Yield the workspaces below the current one, or below the path that was begun."""
    path, colon, _ = asked.begun.rpartition(":")
    for name in asked.names(_WORKSPACES, path):
        yield f"{path}{colon}{name}"


def _ws_first(asked: Asked) -> Iterator[str]:
    yield from ("create", "create-context", "current", "tree", "use", ".", "..", "-", "~")
    yield from _workspaces(asked)


def _sync_targets(asked: Asked) -> Iterator[str]:
    return asked.names(_SYNC_TARGETS)


def _nothing(_: Asked) -> Iterator[str]:
    return iter(())


def _words(*words: str) -> Lookup:
    return lambda _: iter(words)


_WS: dict[tuple[str, ...], tuple[Lookup, tuple[str, ...]]] = {
    (): (_ws_first, ("--short",)),
    ("use",): (_workspaces, ("--short",)),
    ("current",): (_nothing, ("--short",)),
    ("tree",): (_nothing, ("--full",)),
    ("create",): (_nothing, ("--enter", "--ignore-existing", "--location-selector", "--type")),
    ("create-context",): (_nothing, ("--overwrite",)),
}
_LOCATED = ("--imw",)
_PREPARED = ("--espw", "--imw", "--output", "--require-approval", "--syncer-image", "--trust")
_KUBESTELLAR: dict[tuple[str, ...], tuple[Lookup, tuple[str, ...]]] = {
    (): (_words("ensure", "remove", "prep-for-cluster", "prep-for-syncer"), ()),
    ("ensure",): (_words("location", "wmw"), ()),
    ("remove",): (_words("location", "wmw"), ()),
    ("ensure", "location"): (_sync_targets, _LOCATED),
    ("ensure", "wmw"): (_workspaces, ("--with-kube",)),
    ("remove", "location"): (_sync_targets, _LOCATED),
    ("remove", "wmw"): (_workspaces, ()),
    ("prep-for-syncer",): (_sync_targets, _PREPARED),
    ("prep-for-cluster",): (_sync_targets, _PREPARED),
}
_KCP: dict[tuple[str, ...], tuple[Lookup, tuple[str, ...]]] = {
    (): (_words("bind", "crd", "workspace", "ws"), ()),
    ("bind",): (_words("apiexport", "compute"), ()),
    ("bind", "apiexport"): (_nothing, ("--name", "--timeout")),
    ("bind", "compute"): (
        _workspaces,
        ("--apiexports", "--location-selectors", "--name", "--namespace-selector", "--timeout"),
    ),
    ("crd",): (_words("snapshot"), ()),
    ("crd", "snapshot"): (_nothing, ("--prefix",)),
    **{(name, *rest): found for name in ("ws", "workspace") for rest, found in _WS.items()},
}
_PLUGINS = {
    "ws": _WS,
    "workspace": _WS,
    "workspaces": _WS,
    "kcp": _KCP,
    "kubestellar": _KUBESTELLAR,
}


def completed(plugin: str, words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the lines that answer kubectl."""
    asked = Asked(words, environment)
    if asked.before and asked.before[-1] in _FILE_FLAGS:
        return [_FILES]
    table = _PLUGINS[plugin]
    arguments = asked.arguments
    # The longest command that was typed; what follows it are its arguments.
    lengths = range(len(arguments), -1, -1)
    command = next(tuple(arguments[:n]) for n in lengths if tuple(arguments[:n]) in table)
    lookup, flags = table[command]
    if asked.begun.startswith("-") and asked.begun != "-":
        found = [*flags, *(f"--{name}" for name in KUBECONFIG_FLAGS)]
    elif len(arguments) > len(command):
        found = []  # its one argument stands already
    else:
        found = list(lookup(asked))
    return [*(word for word in found if word.startswith(asked.begun)), _NO_FILES]


def main() -> None:
    """Run as ``kubectl_complete-NAME``."""
    plugin = Path(sys.argv[0]).name.partition("-")[2]
    # A kubectl plugin finds the kubeconfig by the environment, as kubectl is.
    for line in completed(plugin, sys.argv[1:], os.environ):  # noqa: TID251
        show(line)
