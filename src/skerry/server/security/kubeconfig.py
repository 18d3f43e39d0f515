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


def _cluster(entry: ClusterEntry) -> dict[str, Any]:
    cluster = {"server": entry.server, "certificate-authority-data": _base64(entry.ca)}
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
