"""Keys for an edge, made at the edge.

``make_key`` has a program of its own do it, see ``signing_request``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import msgspec

from skerry.api.edge_identity import EDGES, EdgeName
from skerry.logic.fleet.syncing.certificates import PendingRequest

_PROGRAM = "skerry.edge.syncer.identity.signing_request"
# A key takes a moment; a machine that takes this long for one is stuck.
_SECONDS = 60.0

# Takes the edge and the credential by which a certificate will be requested.
MakeKey = Callable[[EdgeName, str], Awaitable[PendingRequest]]


class NoKey(Exception):
    """No key could be made; says why."""


async def make_key(edge: EdgeName, credential: str) -> PendingRequest:
    """Return a new key with a request for *edge*."""
    # -P: what lies in the working directory is nobody's library.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    subject = msgspec.json.encode({"commonName": edge.common_name, "organization": EDGES})
    try:
        async with asyncio.timeout(_SECONDS):
            made, complaint = await process.communicate(subject)
    except TimeoutError as error:
        raise NoKey(f"no key was made within {_SECONDS:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        text = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise NoKey(f"{_PROGRAM} ended with exit code {process.returncode}: {text}")
    fields = msgspec.json.decode(made, type=dict[str, str])
    return PendingRequest(credential=credential, **fields)
