"""Client certificates that no longer count, by serial number.

The list is kept in the store, so that all servers of one store agree, and followed by watch, so
that every one of them ends the connections of a revoked certificate at once. An administrator
reads and writes it at ``/extensions/v1/certificates``:

| request | does |
|---|---|
| ``GET`` | lists what is revoked |
| ``POST {"operation": "revoke", "serial": S, "reason": R}`` | revokes a certificate |
| ``POST {"operation": "restore", "serial": S}`` | takes that back |

A serial number is written in hexadecimal, as ``openssl x509 -serial`` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from skerry.api.errors import BadRequest, MethodNotAllowed, NotFound
from skerry.api.keys import PLAIN, ObjectKey, type_prefix
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.server.change import Change
from skerry.server.codec import dump
from skerry.server.extensions import Visit
from skerry.server.http.message import Answer, Response
from skerry.server.request.body import as_object, parse_json
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Conflict, Store, Write

_TYPE = ("security.skerry.io", "revokedcertificates")
_PREFIX = type_prefix(*_TYPE)
# RFC 5280: at most 20 octets.
_SERIAL = re.compile(r"(?:0x)?([0-9a-fA-F]{1,40})").fullmatch
_MAX_REASON = 256
# A list that would not fit into an answer is no longer looked through by anybody.
_MAX_REVOKED = 100_000

log = Logger("authentication")


def parse_serial(text: str) -> int:
    """Return the serial number *text* writes; colons are ignored."""
    found = _SERIAL(text.replace(":", "").strip())
    if found is None:
        raise ValueError(f"serial {text!r}: want up to 40 hexadecimal digits")
    return int(found[1], 16)


def _nobody(_: int) -> None:
    """Nobody needs to know."""


class RevokedCertificates:
    """The revoked serial numbers; ``changed`` is called with each one revoked or restored."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._serials: set[int] = set()
        self._dispatcher: Dispatcher | None = None
        self.changed: Callable[[int], None] = _nobody

    def __contains__(self, serial: object) -> bool:
        return serial in self._serials

    async def follow(self, dispatcher: Dispatcher) -> None:
        """Read what is revoked and keep it up; call before the dispatcher runs."""
        self._dispatcher = dispatcher
        dispatcher.observe(_PREFIX, self._observed, self._serials.clear)
        for entry in (await self._store.range(_PREFIX)).entries:
            self._serials.add(_serial_of(entry.key))

    def _observed(self, change: Change) -> None:
        serial = _serial_of(change.event.key)
        if change.event.value is None:
            self._serials.discard(serial)
        else:
            self._serials.add(serial)
        self.changed(serial)

    # -- what an administrator asks ------------------------------------------------------------

    async def handle(self, visit: Visit) -> Answer:
        if visit.cluster not in (PLAIN, SYSTEM_ADMIN):
            raise NotFound.path()
        if visit.request.method in ("GET", "HEAD"):
            return Response(body=dump({"kind": "RevokedCertificates", "items": await self._all()}))
        if visit.request.method != "POST":
            raise MethodNotAllowed
        body = as_object(parse_json(visit.request.body))
        serial = _serial(body)
        operation = body.get("operation")
        if operation == "revoke":
            record = {
                "serial": f"{serial:x}",
                "reason": _reason(body),
                "time": rfc3339(self._clock.now()),
                "user": visit.user.principal,
            }
            await self._write(visit.cluster, serial, orjson.dumps(record))
            log.info("client certificate revoked", v=0, serial=f"{serial:x}", by=record["user"])
        elif operation == "restore":
            await self._write(visit.cluster, serial, None)
            log.info("client certificate restored", v=0, serial=f"{serial:x}")
        else:
            raise BadRequest(f"operation: {operation!r}: want 'revoke' or 'restore'")
        return Response(body=dump({"kind": "RevokedCertificates", "items": await self._all()}))

    async def _all(self) -> list[dict[str, Any]]:
        entries = (await self._store.range(_PREFIX)).entries
        return [orjson.loads(entry.value) for entry in entries]

    async def _write(self, cluster: str, serial: int, value: bytes | None) -> None:
        """Write or delete one record; return when this server acts by it."""
        key = ObjectKey(*_TYPE, cluster, "", f"{serial:x}").path()
        if value is not None and await self._store.count(_PREFIX) >= _MAX_REVOKED:
            raise BadRequest(f"{_MAX_REVOKED} certificates are revoked: restore lapsed ones first")
        while True:
            entry = await self._store.get(key)
            if value is None and entry is None:
                raise NotFound(f"certificate {serial:x} is not revoked")
            if value is not None and entry is not None:
                return  # the first revocation counts
            expected = 0 if entry is None else entry.revision
            try:
                (revision,) = await self._store.commit([Write(key, value, expected=expected)])
            except Conflict:
                continue
            if self._dispatcher is not None:
                await self._dispatcher.acknowledge(revision)
            return


def _serial(body: dict[str, Any]) -> int:
    text = body.get("serial")
    if not isinstance(text, str):
        raise BadRequest(f"serial: {text!r}: want a string of hexadecimal digits")
    try:
        return parse_serial(text)
    except ValueError as error:
        raise BadRequest(str(error)) from error


def _reason(body: dict[str, Any]) -> str:
    reason = body.get("reason", "")
    if not isinstance(reason, str) or len(reason) > _MAX_REASON:
        raise BadRequest(f"reason: want a string of at most {_MAX_REASON} characters")
    return reason


def _serial_of(key: str) -> int:
    return int(ObjectKey.parse(key).name, 16)
