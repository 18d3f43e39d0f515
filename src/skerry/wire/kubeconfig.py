"""Kubeconfig files: which ones are meant, what one says, and what several say together.

Several files merge as kubectl merges them: of equal names the first file wins, so does the first
current context, and where an entry came from is kept, because paths in it are relative to its
file. Reading and writing the files is their users'.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from skerry.kit.text import one_line

Entry = dict[str, Any]
# What a section's entries are called inside: ``clusters: [{name: ..., cluster: {...}}]``.
SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}


class KubeconfigError(Exception):
    """Why a kubeconfig cannot be used, in a sentence."""


class _Loader(yaml.CSafeLoader):
    """Reads dates as the text they are, so that they are written back unchanged."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name and form are PyYAML's
        first: [(tag, form) for tag, form in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(slots=True)
class Kubeconfig:
    """The merged view of the files, and which file each entry came from."""

    files: tuple[Path, ...]
    clusters: dict[str, Entry] = field(default_factory=dict)
    contexts: dict[str, Entry] = field(default_factory=dict)
    users: dict[str, Entry] = field(default_factory=dict)
    current: str = ""
    origins: dict[tuple[str, str], Path] = field(default_factory=dict)

    def section(self, name: str) -> dict[str, Entry]:
        found: dict[str, Entry] = getattr(self, name)
        return found


def kubeconfig_paths(explicit: str, variable: str, home: Path) -> list[Path]:
    """Return the files to merge: the flag's, else those of $KUBECONFIG, else the home's."""
    if explicit:
        return [Path(explicit)]
    named = [part for part in variable.split(os.pathsep) if part]
    return [Path(part) for part in dict.fromkeys(named)] or [home / ".kube" / "config"]


def document_of(text: str) -> Entry:
    """Return what the text of one file says; raises ``KubeconfigError`` with what is wrong."""
    try:
        document = yaml.load(text, _Loader)  # noqa: S506 - a safe loader, less one resolver
    except yaml.YAMLError as error:
        raise KubeconfigError(f"not YAML: {one_line(str(error))}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"want a mapping, found {type(document).__name__}")
    for section, inner in SECTIONS.items():
        _check_section(section, inner, document.get(section))
    return document


def _check_section(section: str, inner: str, items: object) -> None:
    """Refuse a section that is no list of named mappings; an absent one is empty."""
    if items is None:
        return
    if not isinstance(items, list):
        raise KubeconfigError(f"{section}: want a list, found {type(items).__name__}")
    for number, item in enumerate(items):
        where = f"{section}[{number}]"
        if not isinstance(item, dict):
            raise KubeconfigError(f"{where}: want a mapping, found {type(item).__name__}")
        if not isinstance(item.get(inner), dict | None):
            raise KubeconfigError(f"{where}.{inner}: want a mapping")


def with_entry(document: Entry, section: str, name: str, entry: Entry) -> Entry:
    """Return *document* with *entry* as the content of one of its section's, new or not.

    Whatever else stands beside the content stays, and so does the order.
    """
    inner = SECTIONS[section]
    items = [
        {**item, inner: entry} if item.get("name") == name else item
        for item in document.get(section) or ()
    ]
    if not any(item.get("name") == name for item in items):
        items.append({"name": name, inner: entry})
    return {**document, section: items}


def merged(files: Sequence[Path], documents: Iterable[tuple[Path, Entry]]) -> Kubeconfig:
    """Return what the *documents* of some of the *files* say together."""
    found = Kubeconfig(tuple(files))
    for path, document in documents:
        if document.get("current-context"):
            found.current = found.current or str(document["current-context"])
            found.origins.setdefault(("current-context", ""), path)
        for section, inner in SECTIONS.items():
            entries = found.section(section)
            for item in document.get(section) or ():
                name = str(item.get("name", ""))
                if name not in entries:
                    entries[name] = item.get(inner) or {}
                    found.origins[(section, name)] = path
    return found
