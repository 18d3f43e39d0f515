"""The audit log: who did what, when, with which result, one JSON object a line.

Events are ``audit.k8s.io/v1`` at level Metadata: they name the request and the object, never
what is in it, so no secret can reach the file. Lines are gathered and written by a thread; when
the disk cannot keep up they are dropped and counted rather than kept without bound. The file is
rotated by size.

What a client sent is cut to a stated length, so an event takes at most some kilobytes. Events of
requests that were refused, and of requests without credentials, are limited in rate as well: the
next event that is written says how many were left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from skerry.api.keys import PLAIN
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.text import shortened
from skerry.kit.timestamps import rfc3339_micro
from skerry.server.http.message import Request
from skerry.server.request.info import RequestInfo
from skerry.server.user import User

log = Logger("audit")

# Names of Kubernetes have at most 253 characters. A longer path, header or name is cut.
_TEXT_LIMIT = 256
_URI_LIMIT = 2048
_MAX_VALUES = 32
_MAX_EXTRA = 8

# Where an event of a hub says in which logical cluster it happened, as a kcp's do.
WORKSPACE_ANNOTATION = "tenancy.kcp.io/workspace"

# When an event was made: at the end of a request, or when an answer that goes on began.
COMPLETE = "ResponseComplete"
STARTED = "ResponseStarted"

# Often enough that a crash loses little, seldom enough that a busy server writes in big pieces.
_FLUSH_SECONDS = 0.5
_FILE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Where the log goes and how large it grows."""

    path: Path
    """The file that is written to."""

    max_bytes: int = 100 * 1024 * 1024
    """Size at which the file is rotated."""

    backups: int = 10
    """How many rotated files are kept."""

    waiting_bytes: int = 16 * 1024 * 1024
    """How much may wait to be written, some twenty thousand events; more are dropped."""


class AuditLog:
    """Writes events, in the order in which they came. ``close`` writes the last of them.

    A batch is what waits when it is its turn to be written, and one is written at a time: who
    closes the log while a thread is about to write finds everything in the file all the same.
    """

    def __init__(self, settings: AuditSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None
        # Taken in this order: the turn to write, and what waits.
        self._turn = threading.Lock()
        self._queue = threading.Lock()
        self.dropped = 0

    def record(self, event: Mapping[str, Any]) -> None:
        """Queue an event; returns at once."""
        if self._waiting_bytes >= self._settings.waiting_bytes:
            self.dropped += 1
            return
        line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
        with self._queue:
            self._waiting.append(line)
            self._waiting_bytes += len(line)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_FLUSH_SECONDS, self._begin_writing)

    def _begin_writing(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():
            # The disk is slow; the batch grows until it is done.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_FLUSH_SECONDS, self._begin_writing)
            return
        self._writing = asyncio.get_running_loop().run_in_executor(None, self._write_waiting)
        # Failures are logged where they happen; nobody awaits this one.
        self._writing.add_done_callback(lambda done: done.exception())

    async def flush(self) -> None:
        """Write what waits now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.get_running_loop().run_in_executor(None, self._write_waiting)

    def close(self) -> None:
        """Write what waits, blocking, and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._write_waiting()

    def _write_waiting(self) -> None:
        with self._turn:
            with self._queue:
                batch, self._waiting = b"".join(self._waiting), []
                self._waiting_bytes = 0
            if batch:
                self._write(batch)

    def _write(self, batch: bytes) -> None:
        try:
            self._rotate_if_full(len(batch))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(self._settings.path, flags, _FILE_MODE)
            with os.fdopen(descriptor, "ab") as file:
                file.write(batch)
        except OSError as error:
            self.dropped += batch.count(b"\n")
            log.error("audit events were not written", path=str(self._settings.path), error=error)

    def _rotate_if_full(self, coming: int) -> None:
        path = self._settings.path
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            return
        if size and size + coming > self._settings.max_bytes:
            stamp = self._clock.now().strftime("%Y-%m-%dT%H-%M-%S.%f")
            # Another process that writes to this file may have rotated it in this moment.
            with contextlib.suppress(FileNotFoundError):
                path.rename(path.with_name(f"{path.stem}-{stamp}{path.suffix}"))
            for old in self._backups()[: -self._settings.backups]:
                old.unlink(missing_ok=True)

    def _backups(self) -> list[Path]:
        """Return the rotated files, oldest first; their names sort by time."""
        path = self._settings.path
        return sorted(path.parent.glob(f"{path.stem}-*{path.suffix}"))


def audit_event(
    audit_id: str,
    request: Request,
    info: RequestInfo,
    user: User | None,
    code: int,
    received: datetime,
    now: datetime,
    stage: str = COMPLETE,
) -> dict[str, Any]:
    """Return the event of a finished request. *user* is None when nobody was recognised."""
    uri = f"{request.path}?{request.query_string}" if request.query_string else request.path
    asked = request.impersonator or user
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": audit_id,
        "stage": stage,
        "requestURI": shortened(uri, _URI_LIMIT),
        "verb": info.verb,
        "user": {} if asked is None else _user(asked),
        "sourceIPs": [request.peer.address] if request.peer.address else [],
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": rfc3339_micro(received),
        "stageTimestamp": rfc3339_micro(now),
    }
    agent = request.headers.get("user-agent")
    if agent:
        event["userAgent"] = shortened(agent, _TEXT_LIMIT)
    if request.impersonator is not None and user is not None:
        event["impersonatedUser"] = _user(user)
    if info.is_resource:
        event["objectRef"] = _object_reference(info)
    # The server has the last word: policies and webhooks of tenants choose names of annotations.
    event["annotations"] = {
        **(request.audit_annotations or {}),
        "authorization.k8s.io/decision": "forbid" if code == 403 else "allow",
        **({} if info.cluster in ("", PLAIN) else {WORKSPACE_ANNOTATION: info.cluster}),
    }
    return event


def _user(user: User) -> dict[str, Any]:
    entry: dict[str, Any] = {"username": shortened(user.name, _TEXT_LIMIT)}
    if user.uid:
        entry["uid"] = shortened(user.uid, _TEXT_LIMIT)
    if user.groups:
        entry["groups"] = _texts(user.groups)
    if user.extra:
        entry["extra"] = {
            shortened(key, _TEXT_LIMIT): _texts(values)
            for key, values in islice(user.extra.items(), _MAX_EXTRA)
        }
    return entry


def _texts(values: Sequence[str]) -> list[str]:
    return [shortened(value, _TEXT_LIMIT) for value in values[:_MAX_VALUES]]


def _object_reference(info: RequestInfo) -> dict[str, str]:
    named = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {key: shortened(value, _TEXT_LIMIT) for key, value in named.items() if value}
