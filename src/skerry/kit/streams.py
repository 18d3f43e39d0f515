"""Two connections that are one: what comes on either side leaves on the other.

An end is passed on like everything else. Where a connection can end in one direction alone, it
does; where it cannot, as with TLS, it ends as a whole, because who waits for an end that never
comes waits for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import NamedTuple

_PIECE_BYTES = 64 * 1024


class Stream(NamedTuple):
    """One connection, both directions."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction to its end, and pass the end on; a connection that breaks is one."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()


async def join_streams(client: Stream, server: Stream) -> None:
    """Pass on both directions until *server* has said everything.

    A client may end its side and wait for the rest of the answer; a server that has answered waits
    for nothing.
    """
    async with asyncio.TaskGroup() as tasks:
        upwards = tasks.create_task(copy_stream(client.reader, server.writer))
        await copy_stream(server.reader, client.writer)
        upwards.cancel()
