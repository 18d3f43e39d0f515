"""The extension by which an administrator rotates keys: ``/extensions/v1/keys``.

``GET`` lists the keys by name and the servers that have them. ``POST`` takes one step:

| body | does |
|---|---|
| ``{"operation": "reload"}`` | reads the key files now |
| ``{"operation": "use", "kind": K, "name": N}`` | uses a key that every live server has |
| ``{"operation": "rewrite", "after": A}`` | rewrites one page of Secrets |
| ``{"operation": "dropOld", "kind": K}`` | needs and accepts the current key alone |

No key ever passes through here. A step that cannot be taken yet is a 409 that says what is
missing. The path belongs to the whole server, so it is answered in no workspace.
"""

from __future__ import annotations

from typing import Any

from skerry.api.errors import BadRequest, Conflict, MethodNotAllowed, NotFound
from skerry.api.keys import PLAIN
from skerry.logic.machinery.key_rotation import RotationRefused
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.server.codec import dump
from skerry.server.extensions import Visit
from skerry.server.http.message import Answer, Response
from skerry.server.request.body import as_object, parse_json
from skerry.server.security.encryption import SECRETS_RANGE
from skerry.server.security.key_ring import EncryptionRotation, KeyRing, RotatingKeys
from skerry.store.base import Store


class KeyAdministration:
    """Answers on the path of the keys."""

    def __init__(self, store: Store, ring: KeyRing) -> None:
        self._store = store
        self._ring = ring

    async def handle(self, visit: Visit) -> Answer:
        if visit.cluster not in (PLAIN, SYSTEM_ADMIN):
            raise NotFound.path()
        if visit.request.method in ("GET", "HEAD"):
            return Response(body=dump(await self._status()))
        if visit.request.method != "POST":
            raise MethodNotAllowed
        body = as_object(parse_json(visit.request.body))
        try:
            return Response(body=dump(await self._step(body)))
        except RotationRefused as error:
            raise Conflict(str(error)) from error

    async def _step(self, body: dict[str, Any]) -> dict[str, Any]:
        operation = body.get("operation")
        if operation == "reload":
            self._ring.reload()
        elif operation == "rewrite":
            return await self._rewrite(_text(body, "after", ""))
        elif operation == "use":
            await self._keys(body).use(_text(body, "name"), self._ring.servers.records())
        elif operation == "dropOld":
            await self._keys(body).drop_old(self._ring.servers.records())
        else:
            raise BadRequest(
                f"operation: {operation!r}: want one of 'reload', 'use', 'rewrite', 'dropOld'"
            )
        return await self._status()

    async def _rewrite(self, after: str) -> dict[str, Any]:
        keys = self._ring.kinds["encryption"]
        if not isinstance(keys, EncryptionRotation):
            raise NotFound.path()
        done = await keys.rewrite(after)
        return {"examined": done.examined, "rewritten": done.rewritten, "after": done.after}

    def _keys(self, body: dict[str, Any]) -> RotatingKeys:
        kind = _text(body, "kind")
        found = self._ring.kinds.get(kind)
        if found is None:
            raise BadRequest(f"kind: {kind!r}: want one of {sorted(self._ring.kinds)}")
        return found

    async def _status(self) -> dict[str, Any]:
        servers = self._ring.servers.records()
        kinds = {kind: keys.status(servers) for kind, keys in self._ring.kinds.items()}
        return {
            "kind": "KeyStatus",
            **kinds,
            "secrets": await self._store.count(SECRETS_RANGE),
            "servers": [
                {"name": s.name, "keys": {kind: sorted(known) for kind, known in s.known.items()}}
                for s in servers
            ],
        }


def _text(body: dict[str, Any], name: str, default: str | None = None) -> str:
    found = body.get(name, default)
    if not isinstance(found, str):
        raise BadRequest(f"{name}: {found!r}: want a string")
    return found
