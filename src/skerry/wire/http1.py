r"""HTTP/1.1 heads, the part of a message before its body.

Whoever writes a head must see to it that no name, target or value ends its line: one ``\r\n`` in a
value that came from elsewhere would begin a field, or a whole message, of its own. A request is
ours, so a line break in it is a mistake, and refused. An answer may carry what others wrote, and
has to be sent nevertheless; there, what cannot be printed becomes a space.

Heads of untrusted peers are httptools' to read (``server/http/reading.py`` and
``runtime/connection.py``, which share the names of fields here); ``RequestHead`` is for small
servers that answer one request a connection, and for the proxy, which passes heads on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import NamedTuple


class FieldNames(dict[bytes, str]):
    """Names of header fields as sent → lower case text. Peers use few; strangers' are not kept."""

    _MAX = 512

    def __missing__(self, raw: bytes) -> str:
        name = raw.decode("latin-1").lower()
        if len(self) < self._MAX and len(raw) < 64:
            self[raw] = name
        return name


class RequestHead(NamedTuple):
    """A request line and the lines after it, as they came."""

    method: str
    target: str
    version: str
    lines: list[str]

    def field(self, name: str) -> str:
        """Return the first value of a field, named in lower case; empty without one."""
        for line in self.lines:
            found, _, value = line.partition(":")
            if found.strip().lower() == name:
                return value.strip()
        return ""


def parsed_request(head: bytes) -> RequestHead:
    """Return a head that was read up to its empty line; ValueError without a request line."""
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, version, *more = *first.split(" "), "", ""
    if not version or len(more) != 2:
        raise ValueError(f"request line {first!r}: want a method, a target and a version")
    return RequestHead(method, target, version, lines)


def parsed_response(head: bytes) -> tuple[int, dict[str, str]]:
    """Return status and fields of an answer's head; ValueError without a status line."""
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    if len(parts) < 2 or not parts[1].isdigit():
        raise ValueError(f"answer {first[:80]!r}: want a status line")
    pairs = (line.partition(":") for line in lines if line)
    return int(parts[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


def request_head(
    method: str, target: str, fields: Mapping[str, str], fixed: Iterable[str] = ()
) -> bytes:
    """Return the head of a request, whole; *fixed* are lines that cannot need a look."""
    lines = [f"{name}: {value}" for name, value in fields.items()]
    for part in (target, *lines):
        if "\n" in part or "\r" in part or (part is target and " " in part):
            raise ValueError(f"request text {part!r}: want no line breaks or spaces in it")
    return "\r\n".join((f"{method} {target} HTTP/1.1", *fixed, *lines, "", "")).encode("latin-1")


def response_lines(status: int, fields: Iterable[tuple[str, str]]) -> bytes:
    """Return the status line and fields of an answer, without the empty line that ends a head."""
    text = f"HTTP/1.1 {status} {phrase(status)}\r\n"
    return (text + "".join(f"{name}: {one_line(value)}\r\n" for name, value in fields)).encode()


def phrase(status: int) -> str:
    """Return the reason phrase of *status*, empty when it has none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def one_line(text: str) -> str:
    """Return *text* with a space for whatever could end the line it is written in."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)
