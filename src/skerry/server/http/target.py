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
# A host name, a port and user information.
_MAX_AUTHORITY = 512
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
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in {b"http", b"https"}:
        raise BadRequest(f"request target {target[:64].decode('latin-1')!r}: want a path")
    end = min((at for at in map(rest.find, (b"/", b"?", b"#")) if at >= 0), default=len(rest))
    try:
        # Of the authority alone: what is split is remembered, and targets can be long.
        if end > _MAX_AUTHORITY or not urlsplit(b"//" + rest[:end]).netloc:
            raise ValueError(rest[:end])
    except ValueError as error:
        raise BadRequest("request target: invalid authority") from error
    path = rest[end:].partition(b"#")[0]
    return path if path.startswith(b"/") else b"/" + path


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
