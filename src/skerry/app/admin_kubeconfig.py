"""The administrator's kubeconfig of a server: its own entries kept true, everything else kept.

People work with this file: ``kubectl ws`` makes contexts in it and chooses the current one,
``skerry edge create`` adds clusters. A start of the server therefore refreshes the entries that are
the server's (where it answers, whom to trust, who the administrators are) and leaves the rest, the
current context above all: a ``kubectl delete`` after a restart goes where it went before.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

from skerry.app.kubeconfig_files import edit
from skerry.kit.log import Logger
from skerry.kit.secret_files import write_secret
from skerry.wire.kubeconfig import Entry, KubeconfigError, with_entry

if TYPE_CHECKING:
    # Commands that only look for the file have no use for certificates.
    from skerry.server.security.pki import Credential

_AUTHORITY = "certificate-authority-data"
# What kubectl refuses, or passes over, beside authorities that are given as data.
_OTHER_TRUST = ("certificate-authority", "insecure-skip-tls-verify")
_NAME, _FRESH = "admin.kubeconfig", "admin.fresh.kubeconfig"

log = Logger("server")


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """A server as a kubeconfig names it."""

    name: str
    server: str
    ca: bytes
    # What the server is asked for, where that is not the host of its address.
    tls_server_name: str = ""


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


@dataclass(frozen=True, slots=True)
class AdminEntries:
    """What is the server's own in the file; *current* is where a new file begins."""

    clusters: Sequence[ClusterEntry]
    users: Sequence[UserEntry]
    contexts: Sequence[ContextEntry]
    current: str

    def __post_init__(self) -> None:
        if self.current not in {context.name for context in self.contexts}:
            raise ValueError(f"current context {self.current!r}: no context has that name")


def admin_kubeconfig(data_dir: Path) -> Path:
    """Return the file that leads to the server of a folder."""
    fresh = data_dir / _FRESH
    return fresh if fresh.exists() else data_dir / _NAME


def keep_admin_kubeconfig(data_dir: Path, entries: AdminEntries, patience: float = 5.0) -> Path:
    """Refresh the server's entries in its administrator's kubeconfig; return the file to use.

    A file that cannot be read or replaced is left as it is, and a fresh one is written beside it:
    a server does not fail for what somebody else wrote, nor throw it away. The file's lock is
    waited for *patience* seconds.
    """
    path, fresh = data_dir / _NAME, data_dir / _FRESH
    try:
        edit(path, lambda document: refreshed(document, entries), patience)
    except KubeconfigError as error:
        log.warning("admin.kubeconfig is left as it is", error=str(error), using=str(fresh))
        document = refreshed({"apiVersion": "v1", "kind": "Config"}, entries)
        write_secret(fresh, yaml.safe_dump(document, sort_keys=False).encode())
        return fresh
    fresh.unlink(missing_ok=True)
    return path


def refreshed(document: Entry, entries: AdminEntries) -> Entry:
    """Return *document* with the server's entries as they are now.

    Copies of them under other names, as ``kubectl ws`` makes them, follow: a cluster with the old
    address or the old authorities gets the new ones. The current context is chosen only in a file
    that has none of the server's contexts yet.
    """
    contexts = _contents(document, "contexts", "context")
    begun = any(context.name in contexts for context in entries.contexts)
    document = _with_copies(document, entries.clusters)
    for cluster in entries.clusters:
        kept = _contents(document, "clusters", "cluster").get(cluster.name, {})
        kept = {key: value for key, value in kept.items() if key not in _OTHER_TRUST}
        document = with_entry(document, "clusters", cluster.name, {**kept, **_cluster(cluster)})
    for user in entries.users:
        known = _contents(document, "users", "user").get(user.name, {})
        document = with_entry(document, "users", user.name, {**known, **_user(user)})
    for context in entries.contexts:
        content = {**contexts.get(context.name, {}), **_context(context)}
        document = with_entry(document, "contexts", context.name, content)
    if not begun and not document.get("current-context"):
        document = {**document, "current-context": entries.current}
    return document


def _with_copies(document: Entry, clusters: Sequence[ClusterEntry]) -> Entry:
    """Return *document* with the copies of our clusters led and vouched for as these are."""
    known = _contents(document, "clusters", "cluster")
    places: dict[str, str] = {}
    trusts: dict[str, str] = {}
    for cluster in clusters:
        before, now = known.get(cluster.name, {}), _cluster(cluster)
        if address := _address(before):
            places[address] = _address(now)
        if before.get(_AUTHORITY):
            trusts[before[_AUTHORITY]] = now[_AUTHORITY]
    for name, content in known.items():
        changed = dict(content)
        address = _address(content)
        if address in places:
            changed["server"] = places[address] + content["server"].removeprefix(address)
        if content.get(_AUTHORITY) in trusts:
            changed[_AUTHORITY] = trusts[content[_AUTHORITY]]
        if changed != content:
            document = with_entry(document, "clusters", name, changed)
    return document


def _contents(document: Entry, section: str, inner: str) -> dict[str, Entry]:
    return {
        str(item.get("name", "")): item.get(inner) or {} for item in document.get(section) or ()
    }


def _address(cluster: Entry) -> str:
    """Return scheme, host and port of a cluster's URL as they are written; empty without one."""
    server = str(cluster.get("server") or "")
    address = "{0.scheme}://{0.netloc}".format(urlsplit(server))
    return address if server.startswith(address) and not address.endswith("/") else ""


def _cluster(entry: ClusterEntry) -> Entry:
    named = {"tls-server-name": entry.tls_server_name} if entry.tls_server_name else {}
    return {"server": entry.server, _AUTHORITY: _base64(entry.ca), **named}


def _user(entry: UserEntry) -> Entry:
    user: Entry = {}
    if entry.credential is not None:
        user["client-certificate-data"] = _base64(entry.credential.certificate)
        user["client-key-data"] = _base64(entry.credential.key)
    if entry.token:
        user["token"] = entry.token
    return user


def _context(entry: ContextEntry) -> Entry:
    context: Entry = {"cluster": entry.cluster, "user": entry.user}
    if entry.namespace:
        context["namespace"] = entry.namespace
    return context


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
