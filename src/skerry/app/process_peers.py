"""How the processes of a group ask each other, which they do rarely.

Each listens on a socket whose name is the kernel's and ends with it, so that nothing is left behind
and a process that is not there is known at once. Anybody on the machine may find such a name; who
asks must know a secret that only the processes of the group have, from the supervisor's memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec

from skerry.kit.ids import IdSource
from skerry.kit.log import Logger

log = Logger("processes")

# What is asked takes milliseconds; whoever has not answered by then is stuck, or starting.
_SECONDS = 2.0
_MAX_BYTES = 64 << 20
_LENGTH_BYTES = 4

Answering = Callable[[bytes], Awaitable[bytes]]


class _Question(msgspec.Struct, array_like=True):
    secret: str
    kind: str
    content: bytes


@dataclass(frozen=True, slots=True)
class GroupName:
    """By which the processes of one group find and know each other."""

    name: str
    secret: str

    @classmethod
    def new(cls, ids: IdSource) -> GroupName:
        """Return one that nobody has."""
        return cls(f"skerry-{ids.uid()}", ids.bytes(32).hex())

    def address(self, index: int) -> str:
        """Return where a process listens: a name of the kernel's own."""
        return f"\0{self.name}-{index}"


class Peers:
    """The other processes, as one of them sees them."""

    def __init__(self, group: GroupName, own: int, count: int) -> None:
        self._group = group
        self.own = own
        self.count = count
        # What this process answers, by the kind of question; filled while it is assembled.
        self.answers: dict[str, Answering] = {}

    async def run(self) -> None:
        """Answer the others until cancelled."""
        async with self.serving():
            await asyncio.Event().wait()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Answer the others inside the context."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(self._group.address(self.own))
            listening.listen()
            listening.setblocking(False)
            server = await asyncio.start_unix_server(self._serve, sock=listening)
            try:
                yield
            finally:
                server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            try:
                async with asyncio.timeout(_SECONDS):
                    question = msgspec.msgpack.decode(await _read(reader), type=_Question)
                    if not hmac.compare_digest(question.secret, self._group.secret):
                        return
                    answering = self.answers.get(question.kind)
                    if answering is not None:
                        await _write(writer, await answering(question.content))
            except (TimeoutError, OSError, EOFError, msgspec.MsgspecError) as error:
                log.debug("a question of another process was not answered", error=error)

    async def ask(self, index: int, kind: str, content: bytes = b"") -> bytes | None:
        """Return what a process answers; None when it does not, for now."""
        if index == self.own:
            return await self.answers[kind](content)
        try:
            async with asyncio.timeout(_SECONDS):
                reader, writer = await self._connected(index)
                with contextlib.closing(writer):
                    question = _Question(self._group.secret, kind, content)
                    await _write(writer, msgspec.msgpack.encode(question))
                    return await _read(reader)
        except (TimeoutError, OSError, EOFError) as error:
            log.warning("another process did not answer", process=index, error=error)
            return None

    async def _connected(self, index: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # Not by its path: uvloop takes a name of the kernel's for an empty one.
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, self._group.address(index))
            return await asyncio.open_unix_connection(sock=made)
        except (OSError, asyncio.CancelledError):
            made.close()
            raise

    async def ask_all(self, kind: str) -> Mapping[int, bytes]:
        """Return what every process answers that does, this one included, in their order."""
        answers = await asyncio.gather(*(self.ask(index, kind) for index in range(self.count)))
        return {index: each for index, each in enumerate(answers) if each is not None}


async def _read(reader: asyncio.StreamReader) -> bytes:
    length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
    if length > _MAX_BYTES:
        raise OSError(f"a message of {length} bytes")
    return await reader.readexactly(length)


async def _write(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
    await writer.drain()
