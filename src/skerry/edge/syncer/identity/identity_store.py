"""Where an edge's identity is kept: a file of the syncer's own, or a Secret of the edge cluster.

A pod may come up on another node, and several may stand by for each other; all of them are one
edge and share one key. So in a cluster the identity is a Secret, which whoever writes second does
not overwrite.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Protocol

from skerry.api.errors import Conflict
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.log import Logger
from skerry.kit.secret_files import write_secret
from skerry.logic.fleet.syncing.certificates import EdgeIdentity, decode_identity
from skerry.runtime.client import Client, WriteOptions

_SECRETS = GroupVersionResource("", "v1", "secrets")
_FIELD = "identity.json"
_OPTIONS = WriteOptions(field_manager="skerry-syncer")

_log = Logger("syncer-identity")


class IdentityStore(Protocol):
    """One edge's identity; ``save`` is durable and all or nothing."""

    async def load(self) -> EdgeIdentity:
        """Return what is kept; an empty identity when that is nothing."""

    async def save(self, identity: EdgeIdentity) -> None:
        """Keep *identity*; ``Conflict`` when another process has saved since ``load``."""


class FileStore:
    """An identity in a file that only its owner can read.

    Nobody else writes there, so saving never conflicts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def load(self) -> EdgeIdentity:
        try:
            return _decoded(self._path.read_bytes(), str(self._path))
        except FileNotFoundError:
            return EdgeIdentity()

    async def save(self, identity: EdgeIdentity) -> None:
        write_secret(self._path, identity.encode())


class SecretStore:
    """An identity in a Secret that exists already; the syncer may read and change this one only."""

    def __init__(self, edge: Client, namespace: str, name: str) -> None:
        self._edge = edge
        self._namespace, self._name = namespace, name
        self._version = ""
        self._kept = EdgeIdentity()

    async def load(self) -> EdgeIdentity:
        return self._taken(await self._edge.get(_SECRETS, self._name, self._namespace))

    async def save(self, identity: EdgeIdentity) -> None:
        try:
            await self._write(identity)
        except Conflict:
            # Only somebody else's identity is a conflict, not a label on the Secret.
            before = self._kept
            if await self.load() != before:
                raise
            await self._write(identity)

    async def _write(self, identity: EdgeIdentity) -> None:
        text = base64.b64encode(identity.encode()).decode()
        patch = {"metadata": {"resourceVersion": self._version}, "data": {_FIELD: text}}
        saved = await self._edge.patch(
            _SECRETS, self._name, patch, self._namespace, options=_OPTIONS
        )
        self._taken(saved)

    def _taken(self, secret: Object) -> EdgeIdentity:
        self._version = str(secret["metadata"].get("resourceVersion", ""))
        text = base64.b64decode((secret.get("data") or {}).get(_FIELD, ""))
        self._kept = _decoded(text, f"{self._namespace}/{self._name}") if text else EdgeIdentity()
        return self._kept


def _decoded(text: bytes, key: str) -> EdgeIdentity:
    try:
        return decode_identity(text)
    except ValueError as error:
        # Never overwritten without a word: the key in it may be all that a hub accepts.
        _log.error("the edge's identity cannot be read; it needs a new one", key=key, error=error)
        return EdgeIdentity()
