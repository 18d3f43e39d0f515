"""What a request target names.

The path is percent-decoded exactly once, as Go's server does before routing and authorization,
so ``%2f`` is a separator like any other and nothing downstream decodes again. No path of ours
is a file's; still, ``.`` and ``..`` segments name nothing we serve and are answered 404 here,
so that no later part can be led astray by them.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from skerry.api.errors import BadRequest, NotFound

_HEX = frozenset(b"0123456789abcdefABCDEF")
_DOTS = frozenset((".", ".."))


def parsed_target(target: bytes) -> tuple[str, str]:
    """Return the decoded path and the raw query string of a request target.

    Raises BadRequest for what cannot be a target and NotFound for dot segments.
    """
    if target[:1] != b"/":
        target = _origin_form(target)
    raw_path, _, query = target.partition(b"?")
    path = _decoded(raw_path) if b"%" in raw_path else raw_path.decode("ascii")
    if "/." in path and not _DOTS.isdisjoint(path.split("/")):
        raise NotFound.path()
    return path, query.decode("ascii")


def _origin_form(target: bytes) -> bytes:
    """Return the path and query of an absolute target (``http://host/path?query``)."""
    scheme, separator, _ = target.partition(b"://")
    if not separator or scheme.lower() not in {b"http", b"https"}:
        raise BadRequest(f"request target {target[:64].decode('latin-1')!r}: want a path")
    try:
        parts = urlsplit(target)
    except ValueError as error:
        raise BadRequest("request target: invalid authority") from error
    path = parts.path or b"/"
    return path + b"?" + parts.query if parts.query else path


def _decoded(raw: bytes) -> str:
    """Undo percent-encoding; a stray ``%`` or what is no text is refused, as Go refuses it."""
    head, *rest = raw.split(b"%")
    pieces = [head]
    for piece in rest:
        if len(piece) < 2 or piece[0] not in _HEX or piece[1] not in _HEX:
            raise BadRequest(f'invalid URL escape "%{piece[:2].decode("latin-1")}"')
        pieces.append(bytes((int(piece[:2], 16),)))
        pieces.append(piece[2:])
    try:
        path = b"".join(pieces).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest("request path: want UTF-8") from error
    if any(character < " " or character == "\x7f" for character in path):
        raise BadRequest("request path: control characters are not allowed")
    return path
