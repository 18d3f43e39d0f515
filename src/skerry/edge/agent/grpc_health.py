"""The question a gRPC probe asks: ``grpc.health.v1.Health/Check``, over plain HTTP/2.

One request on one connection, so of HTTP/2 only the frames that takes: header fields are sent
without compression, those that come back are not needed, because the answer is in the data.
"""

from __future__ import annotations

import asyncio
import struct

from skerry.edge.agent.network import Streams
from skerry.wire.protobuf import delimited_field

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _ACKNOWLEDGE, _END_HEADERS, _PADDED = 0x1, 0x1, 0x4, 0x8
_STREAM = 1
# A health answer is a few bytes; whoever sends more is no health service.
_MAX_BYTES = 1 << 16
_STATUS = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
SERVING = "SERVING"


class RpcFailed(Exception):
    """The service did not answer the question."""


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """Return one HTTP/2 frame."""
    return struct.pack("!I", len(content))[1:] + struct.pack("!BBI", kind, flags, stream) + content


def request(service: str, authority: str) -> bytes:
    """Return everything a client sends to ask how *service* is."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
        "user-agent": "kube-probe/1.32",
    }
    # Each field literally, by a new name, not to be indexed.
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
    name = service.encode()
    message = delimited_field(1, name) if name else b""
    data = struct.pack("!BI", 0, len(message)) + message
    return (
        _PREFACE
        + frame(_SETTINGS, 0, 0)
        + frame(_HEADERS, _END_HEADERS, _STREAM, block)
        + frame(_DATA, _END_STREAM, _STREAM, data)
    )


def _text(value: str) -> bytes:
    data = value.encode()[:126]
    return bytes([len(data)]) + data


def status_of(data: bytes) -> str:
    """Return what an answer's data says; raises ``RpcFailed``."""
    if len(data) < 5 or data[0] != 0:
        raise RpcFailed("the service answered without a health status")
    message = data[5 : 5 + struct.unpack_from("!I", data, 1)[0]]
    # One field, number 1, an enumeration; none at all means its default.
    if message and message[0] != 0x08:
        raise RpcFailed("the service answered with something else than a health status")
    return _STATUS.get(message[1] if len(message) > 1 else 0, "UNKNOWN")


async def check(streams: Streams, service: str, authority: str) -> str:
    """Return how a service says it is; raises ``RpcFailed`` and ``OSError``."""
    reader, writer = streams
    writer.write(request(service, authority))
    answer = b""
    try:
        while True:
            head = await reader.readexactly(9)
            size = int.from_bytes(head[:3], "big")
            kind, flags, stream = struct.unpack("!BBI", head[3:])
            if size > _MAX_BYTES:
                raise RpcFailed(f"a frame of {size} bytes")
            content = await reader.readexactly(size)
            if kind in (_SETTINGS, _PING) and not flags & _ACKNOWLEDGE:
                reply = content if kind == _PING else b""
                writer.write(frame(kind, _ACKNOWLEDGE, 0, reply))
            elif kind in (_RESET, _GOAWAY):
                raise RpcFailed("the service refused the request")
            elif stream == _STREAM and kind == _DATA:
                answer += content[1 : size - content[0]] if flags & _PADDED else content
            if stream == _STREAM and kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                return status_of(answer)
    except asyncio.IncompleteReadError as error:
        raise RpcFailed("the service closed the connection") from error
