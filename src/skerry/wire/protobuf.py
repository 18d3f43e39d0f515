"""Protocol Buffers on the wire: tagged fields in, tagged fields out.

A message is a run of fields, each a varint tag (number and wire type) and a value. Nothing here
knows Kubernetes. Whatever the bytes, reading either yields fields or raises ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

VARINT: Final = 0
FIXED64: Final = 1
DELIMITED: Final = 2
FIXED32: Final = 5

# Ten bytes of seven bits each hold what a number of 64 bits needs.
_MAX_VARINT_BITS = 70
_MAX_VARINT = 0xFFFFFFFFFFFFFFFF
_ONE_BYTE = [bytes((number,)) for number in range(0x80)]
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}


def read_fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield (number, wire type, value); fixed and delimited values are the raw bytes."""
    position, end = 0, len(data)
    while position < end:
        tag, position = read_varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("field number 0 does not exist")
        if wire_type == DELIMITED:
            size, position = read_varint(data, position)
        elif wire_type == VARINT:
            value, position = read_varint(data, position)
            yield number, VARINT, value
            continue
        elif wire_type in _FIXED_SIZES:
            size = _FIXED_SIZES[wire_type]
        else:
            raise ValueError(f"field {number} has the unknown wire type {wire_type}")
        after = position + size
        if after > end:
            raise ValueError(f"field {number} claims {size} bytes where {end - position} are left")
        yield number, wire_type, data[position:after]
        position = after


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the unsigned number at *position* and where it ends."""
    try:
        byte = data[position]
        if byte < 0x80:  # nearly all tags and most sizes are one byte
            return byte, position + 1
        result, shift = byte & 0x7F, 7
        while True:
            position += 1
            byte = data[position]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result & _MAX_VARINT, position + 1
            shift += 7
            if shift >= _MAX_VARINT_BITS:
                raise ValueError(f"a number has more than {_MAX_VARINT_BITS // 7} bytes")
    except IndexError as error:
        raise ValueError("the message ends within a number") from error


def signed(value: int) -> int:
    """Return an unsigned 64-bit *value* as the signed number it stands for."""
    return value - (1 << 64) if value >= 1 << 63 else value


def varint(value: int) -> bytes:
    """Return *value* as a varint; negative numbers take ten bytes."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    value &= _MAX_VARINT
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number_field(number: int, value: int) -> bytes:
    """Return a field that holds a whole number."""
    return varint(number << 3 | VARINT) + varint(value)


def fixed64_field(number: int, value: bytes) -> bytes:
    """Return a field that holds eight raw bytes."""
    return varint(number << 3 | FIXED64) + value


def delimited_field(number: int, value: bytes) -> bytes:
    """Return a field that holds bytes, a text or a message."""
    return varint(number << 3 | DELIMITED) + varint(len(value)) + value
