"""An edge's first certificate without a syncer: to see the key, or before a syncer runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from skerry.api.edge_identity import parse_bootstrap_token
from skerry.app.hub_credential import IDENTITY_FILE, hub_line, mailbox_of
from skerry.app.syncer_data import data_directory
from skerry.edge.syncer.identity.credential import LAPSED, NOT_YET, WAITING, HubCredential
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.runtime.kubeconfig import ClientConfig, Overrides, load


class NotJoined(Exception):
    """The edge has no certificate; says why."""


class NotApproved(NotJoined):
    """Nobody has approved the edge within the time given."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What an edge has got."""

    mailbox: str
    expires: datetime


async def join(
    sync_target: str,
    kubeconfig: Path,
    data_dir: Path,
    *,
    wait_seconds: float | None,
    waiting: Callable[[str], None],
) -> Joined:
    """Have a certificate for this edge in *data_dir*; one that is there already is enough.

    *waiting* is called with the fingerprint of the key when somebody has to approve.
    """
    messages: asyncio.Queue[str] = asyncio.Queue()

    def read() -> ClientConfig:
        return load([kubeconfig], Overrides())

    with data_directory(data_dir):
        line = hub_line(
            read,
            data_dir,
            sync_target,
            clock=SystemClock(),
            ids=SystemIds(),
            metrics=SyncerMetrics(),
            observe=messages.put_nowait,
        )
        try:
            begins = parse_bootstrap_token(read().token) or (data_dir / IDENTITY_FILE).exists()
            if line.credential is None or not begins:
                raise NotJoined(
                    f"{kubeconfig} has no bootstrap credential: make one at the hub with skerry "
                    f"edge bootstrap {sync_target}"
                )
            expires = await _certified(line.credential, messages, wait_seconds, waiting)
        finally:
            await line.transport.close()
    return Joined(mailbox_of(read()), expires)


async def _certified(
    credential: HubCredential,
    messages: asyncio.Queue[str],
    wait_seconds: float | None,
    waiting: Callable[[str], None],
) -> datetime:
    """Return when the certificate ends, once there is one."""
    try:
        async with asyncio.timeout(wait_seconds), asyncio.TaskGroup() as tasks:
            working = [
                tasks.create_task(credential.run()),
                tasks.create_task(_follow(credential, messages, waiting)),
            ]
            await credential.certified.wait()
            for task in working:
                task.cancel()
    except TimeoutError as error:
        raise NotApproved(credential.message or "no answer from the hub in time") from error
    except BaseExceptionGroup as group:
        found = group.subgroup(NotJoined)
        if found is None:
            raise
        raise NotJoined(str(found.exceptions[0])) from group
    if credential.expires is None:
        raise NotJoined("the certificate was lost the moment it was there")
    return credential.expires


async def _follow(
    credential: HubCredential, messages: asyncio.Queue[str], waiting: Callable[[str], None]
) -> None:
    while True:
        message = await messages.get()
        if message.startswith(WAITING):
            waiting(credential.fingerprint)
        elif message not in ("", LAPSED) and not message.startswith(NOT_YET):
            raise NotJoined(message)
