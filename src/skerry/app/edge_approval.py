"""Letting edges in: which keys ask for a certificate, and the word that gives them one.

A person compares the fingerprint at both ends before approving: the edge's log and ``skerry edge
join`` show it too.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass

from skerry.api.edge_identity import REQUESTS, SIGNER, request_name
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.objects import Object
from skerry.app.edge_identity import HubAccess, mailbox_of, mailbox_path
from skerry.logic.fleet.syncing.certificates import key_fingerprint, verdict_of
from skerry.runtime.client import Client, Selection, WriteOptions

_OPTIONS = WriteOptions(field_manager="skerry-approve")
# Mailboxes asked at the same time; a hub has seats for more than one administrator.
_PARALLEL = 16


class WrongKey(Exception):
    """A request does not have the name of its key; nobody makes such a request by accident."""


class NothingWaits(Exception):
    """No key of the edge waits for approval, or more than one and nobody said which."""


@dataclass(frozen=True, slots=True)
class WaitingKey:
    """A key whose certificate somebody has to approve."""

    sync_target: str
    mailbox: str
    request: str
    requester: str
    since: str

    @property
    def fingerprint(self) -> str:
        return key_fingerprint(self.request)

    def as_json(self) -> Object:
        return {
            "edge": self.sync_target,
            "mailbox": self.mailbox,
            "request": self.request,
            "fingerprint": self.fingerprint,
            "requester": self.requester,
            "since": self.since,
        }


async def waiting_keys(hub: HubAccess, sync_target: str, mailbox: str) -> list[WaitingKey]:
    """Return the keys of one edge that wait, the oldest first; *mailbox* is its workspace."""
    found = await hub.at(mailbox).list(REQUESTS)
    waiting = [_waiting_key(sync_target, mailbox, item) for item in found.items if _waits(item)]
    return sorted(waiting, key=lambda key: (key.since, key.request))


async def all_waiting_keys(hub: HubAccess, imw: str, espw: str) -> list[WaitingKey]:
    """Return what waits of all edges of an inventory workspace."""
    targets = (await hub.at(imw).list(SYNC_TARGETS)).items
    room = asyncio.Semaphore(_PARALLEL)

    async def of(target: Object) -> Sequence[WaitingKey]:
        path = mailbox_path(espw, mailbox_of(target))
        async with room:
            try:
                return await waiting_keys(hub, target["metadata"]["name"], path)
            except (NotFound, Forbidden):
                return ()  # the mailbox is still to be made

    found = await asyncio.gather(*(of(target) for target in targets))
    return sorted((key for keys in found for key in keys), key=lambda key: key.sync_target)


async def approved(
    hub: HubAccess, sync_target: str, mailbox: str, fingerprint: str, wait_seconds: float
) -> WaitingKey:
    """Approve the one key of an edge that waits, or the one whose fingerprint begins so.

    Waits for an edge that has not asked yet. Raises ``NothingWaits`` and ``WrongKey``.
    """
    client = hub.at(mailbox)
    try:
        async with asyncio.timeout(wait_seconds):
            await _until_one_waits(client)
    except TimeoutError as error:
        raise NothingWaits(
            f"no key of edge {sync_target} waits for approval; the edge asks when its syncer "
            "starts, or with skerry edge join"
        ) from error
    waiting = await waiting_keys(hub, sync_target, mailbox)
    chosen = [key for key in waiting if _fits(key, fingerprint)]
    if len(chosen) != 1:
        shown = ", ".join(key.fingerprint for key in waiting)
        raise NothingWaits(
            f"{len(chosen)} keys of edge {sync_target} fit, of those that wait ({shown}): name one "
            "with --key, after comparing it with what the edge shows"
        )
    await _approve(client, chosen[0].request)
    return chosen[0]


async def _until_one_waits(client: Client) -> None:
    while True:
        found = await client.list(REQUESTS)
        if any(map(_waits, found.items)):
            return
        async with client.watch(
            REQUESTS, Selection(), resource_version=found.resource_version
        ) as events:
            async for event in events:
                if event.kind in ("ADDED", "MODIFIED") and _waits(event.object):
                    return


async def _approve(client: Client, name: str) -> None:
    request = await client.get(REQUESTS, name)
    _check_key(request)
    status = dict(request.get("status") or {})
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "SkerryEdgeApprove",
        "message": "approved by skerry edge approve",
    }
    status["conditions"] = [*(status.get("conditions") or ()), condition]
    body = {**request, "status": status}
    await client.update(REQUESTS, body, subresource="approval", options=_OPTIONS)


def _check_key(request: Object) -> None:
    """What a person has compared is the name; it must be that of the key which is approved."""
    # Only here: listing what waits need not load it.
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    name = request["metadata"]["name"]
    try:
        asked = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
        key = asked.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except ValueError as error:
        raise WrongKey(f"request {name}: {error}") from error
    if request_name(key) != name:
        raise WrongKey(f"request {name} is for another key, {request_name(key)}: deny it")


def _fits(key: WaitingKey, fingerprint: str) -> bool:
    digits = fingerprint.replace(":", "").lower()
    return key.fingerprint.replace(":", "").startswith(digits)


def _waits(request: Object) -> bool:
    ours = (request.get("spec") or {}).get("signerName") == SIGNER
    conditions = (request.get("status") or {}).get("conditions") or ()
    return ours and not conditions and not verdict_of(request).certificate


def _waiting_key(sync_target: str, mailbox: str, request: Object) -> WaitingKey:
    metadata = request["metadata"]
    return WaitingKey(
        sync_target=sync_target,
        mailbox=mailbox,
        request=metadata["name"],
        requester=str(request["spec"].get("username", "")),
        since=str(metadata.get("creationTimestamp", "")),
    )
