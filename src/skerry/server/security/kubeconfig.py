"""Kubeconfig files, as kubectl and client-go read them, with all data embedded."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from skerry.kit.secret_files import write_secret
from skerry.server.security.pki import Credential

_AUTHORITY = "certificate-authority-data"


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """A server as a kubeconfig names it."""

    name: str
    server: str
    ca: bytes


@dataclass(frozen=True, slots=True)
class UserEntry:
    """A user as a kubeconfig names it: by certificate, by token, or by neither."""

    name: str
    credential: Credential | None = None
    token: str = ""


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A cluster together with the user who goes there."""

    name: str
    cluster: str
    user: str
    namespace: str = ""


def kubeconfig(
    clusters: Sequence[ClusterEntry],
    users: Sequence[UserEntry],
    contexts: Sequence[ContextEntry],
    current: str,
) -> dict[str, Any]:
    """Return the Config object; *current* must be one of the contexts."""
    if current not in {context.name for context in contexts}:
        raise ValueError(f"current context {current!r}: no context has that name")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [_cluster(entry) for entry in clusters],
        "users": [{"name": entry.name, "user": _user(entry)} for entry in users],
        "contexts": [_context(entry) for entry in contexts],
        "current-context": current,
        "preferences": {},
    }


def write_kubeconfig(
    path: Path,
    clusters: Sequence[ClusterEntry],
    users: Sequence[UserEntry],
    contexts: Sequence[ContextEntry],
    current: str,
) -> None:
    """Write a kubeconfig that only its owner can read, replacing the old one atomically."""
    config = kubeconfig(clusters, users, contexts, current)
    write_secret(path, yaml.safe_dump(config, sort_keys=False).encode())


def refresh_kubeconfig(
    path: Path, clusters: Sequence[ClusterEntry], users: Sequence[UserEntry]
) -> None:
    """Put new certificates into a kubeconfig that was written before.

    Whatever trusted the server before trusts it by the new authorities, entries that other
    commands have added included; the rest stays as it is.
    """
    if not path.exists():
        return
    config = yaml.safe_load(path.read_text())
    wanted = {entry.name: _cluster(entry)["cluster"] for entry in clusters}
    replaced = {
        each["cluster"].get(_AUTHORITY): wanted[each["name"]][_AUTHORITY]
        for each in config["clusters"]
        if each["name"] in wanted
    }
    for each in config["clusters"]:
        before = each["cluster"].get(_AUTHORITY)
        if before in replaced:
            each["cluster"][_AUTHORITY] = replaced[before]
    present = {entry.name: _user(entry) for entry in users}
    for each in config["users"]:
        if each["name"] in present:
            each["user"] = {**each["user"], **present[each["name"]]}
    write_secret(path, yaml.safe_dump(config, sort_keys=False).encode())


def _cluster(entry: ClusterEntry) -> dict[str, Any]:
    cluster = {"server": entry.server, _AUTHORITY: _base64(entry.ca)}
    return {"name": entry.name, "cluster": cluster}


def _user(entry: UserEntry) -> dict[str, Any]:
    user: dict[str, Any] = {}
    if entry.credential is not None:
        user["client-certificate-data"] = _base64(entry.credential.certificate)
        user["client-key-data"] = _base64(entry.credential.key)
    if entry.token:
        user["token"] = entry.token
    return user


def _context(entry: ContextEntry) -> dict[str, Any]:
    context = {"cluster": entry.cluster, "user": entry.user}
    if entry.namespace:
        context["namespace"] = entry.namespace
    return {"name": entry.name, "context": context}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
