"""The files of the page: read once, named by their content, compressed before anybody asks.

All files below ``static`` share one folder whose name is a digest of all of them, so that a module
finds its neighbours by relative paths and a browser may keep whatever it has for ever: another
version is another folder. The page itself, ``index.html``, names that folder wherever it says
``/console/assets/HASH/`` and is the only file that is asked for anew; it also names the issuer at
which people may sign in. What it begins with is joined (``bundle``).
"""

from __future__ import annotations

import gzip
import hashlib
import html
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skerry.web.bundle import flattened, joined

STATIC = Path(__file__).parent / "static"
PREFIX = "/console/assets/"
PAGE = "index.html"
ENTRY = "app/main.js"
STYLE = "style/console.css"
# The connection is begun before the rest of the page is there.
APART = frozenset({"app/wire.js"})
_FOLDER = f"{PREFIX}HASH/"
_ISSUER = '<meta name="skerry-oidc" content="{}">'
_DIGEST_LETTERS = 16
# Below this a compressed file is no smaller in packets.
_MIN_GZIP_BYTES = 256
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
_ANY = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is served."""

    body: bytes
    media_type: str
    gzipped: bytes = b""


@dataclass(frozen=True, slots=True)
class Assets:
    """Every file of the page."""

    folder: str
    page: Asset
    files: Mapping[str, Asset]


def read_assets(root: Path = STATIC, *, issuer: str = "") -> Assets:
    """Return the files below *root*; the name of their folder changes with any of them.

    *issuer* is what people know the OpenID Connect issuer by, at which they may sign in.
    """
    found = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    digest = hashlib.sha256()
    for name, body in found.items():
        digest.update(f"{name}\0{len(body)}\0".encode())
        digest.update(body)
    folder = f"{PREFIX}{digest.hexdigest()[:_DIGEST_LETTERS]}/"
    found |= _at_once(found)
    page = found.pop(PAGE).replace(_FOLDER.encode(), folder.encode())
    named = _ISSUER.format(html.escape(issuer))
    page = page.replace(_ISSUER.format("").encode(), named.encode())
    files = {f"{folder}{name}": _asset(name, body) for name, body in found.items()}
    return Assets(folder, _asset(PAGE, page), files)


def _at_once(found: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return what the page begins with in few files instead of many, as far as it is there."""
    begin = joined(found, ENTRY, APART) if ENTRY in found else {}
    return {**begin, STYLE: flattened(found, STYLE)} if STYLE in found else begin


def _asset(name: str, body: bytes) -> Asset:
    media_type = _MEDIA_TYPES.get(Path(name).suffix, _ANY)
    packed = b""
    if len(body) >= _MIN_GZIP_BYTES and not media_type.startswith("image/png"):
        # Without a time, so that the same files are the same bytes.
        packed = gzip.compress(body, 9, mtime=0)
    return Asset(body, media_type, packed if len(packed) < len(body) else b"")
