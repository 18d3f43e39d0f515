"""Just enough of the protobuf wire format to speak to etcd.

etcd's own definitions generate a module that clashes with any other copy of them in the same
process and drags in the protobuf runtime. The few messages needed (``etcd_messages``) use two of
the wire types: varints and length-delimited bytes. Unknown fields are skipped, as the format
asks, so newer servers are understood.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are not a protobuf message."""


def varint(number: int) -> bytes:
    """Return *number*, which must not be negative, in base 128, lowest digits first."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field: int, number: int) -> bytes:
    """Return a numeric field; nothing for zero, which is what an absent field means."""
    return varint(field << 3 | _VARINT) + varint(number) if number else b""


def boolean(field: int, value: bool) -> bytes:
    """Return a truth value; nothing for False."""
    return integer(field, int(value))


def blob(field: int, content: bytes) -> bytes:
    """Return a bytes, string or message field; written even when empty."""
    return varint(field << 3 | _BYTES) + varint(len(content)) + content


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield each field's number with its content: an int for varints, bytes for the rest."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _read_varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            number, position = _read_varint(message, position)
            yield tag >> 3, number
            continue
        if kind == _BYTES:
            length, position = _read_varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise WireError(f"field {tag >> 3}: wire type {kind} is not known")
        if position + length > end:
            raise WireError(f"field {tag >> 3}: {length} bytes announced, {end - position} left")
        yield tag >> 3, message[position : position + length]
        position += length


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    try:
        while True:
            byte = message[position]
            position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number, position
            shift += 7
    except IndexError as error:
        raise WireError("a number ends with the message") from error
