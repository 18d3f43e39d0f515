"""What may be asked of an edge cluster through its tunnel: its pods, and little of those.

The hub decides who may ask and the syncer what is passed on; both read a request by the functions
here, so neither can take for a log what the other takes for something else. A path is taken apart
by its segments, each of which must be a name; nothing else is ever sent to an edge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import orjson

from skerry.api.edge import GROUP
from skerry.api.kinds import GroupResource

# What stands for an edge in RBAC, where it is no more than a name: ``edges/log``, ``edges/exec``.
# It is no type, so no exporter's policy is about it, and no right to SyncTargets gives it.
RIGHTS_ON: Final = GroupResource(GROUP, "edges")

# Where a syncer dials its tunnel, in its mailbox, and where everybody else asks through one.
TUNNEL_PATH: Final = "/extensions/v1/tunnel"
EDGES_PATH: Final = "/extensions/v1/edges"

LOG: Final = "log"
# What runs in a pod, or speaks with what runs there.
RUNNING: Final = frozenset(("exec", "attach", "portforward"))
# Reading pods themselves, for their names and containers.
PODS: Final = "pods"

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_PREFIX: Final = ("", "api", "v1", "namespaces")
# Request headers that mean something to the other end of a log, a WebSocket or SPDY; whoever asks
# is known to the hub alone, and their credentials never leave it.
_SENT: Final = frozenset(
    (
        "accept",
        "connection",
        "upgrade",
        "sec-websocket-key",
        "sec-websocket-version",
        "sec-websocket-protocol",
        "x-stream-protocol-version",
    )
)
_RETURNED: Final = frozenset(
    ("sec-websocket-accept", "sec-websocket-protocol", "x-stream-protocol-version")
)
_MEDIA: Final = frozenset(("application/json", "text/plain"))
_MAX_QUERY: Final = 32 << 10


def tunnel_path(cluster: str = "") -> str:
    """Return where a syncer dials; *cluster* is its mailbox, where its server names none."""
    return f"/clusters/{cluster}{TUNNEL_PATH}" if cluster else TUNNEL_PATH


class TunnelRequestError(ValueError):
    """What was asked for is not for a tunnel, in a sentence."""


class PodRequest(NamedTuple):
    """A request about pods of one namespace; ``pod`` is empty for all of them."""

    namespace: str
    pod: str
    action: str

    @property
    def verb(self) -> str:
        """The verb of RBAC that it needs, whatever the method: running needs ``create``."""
        if self.action in RUNNING:
            return "create"
        return "get" if self.pod else "list"


def pod_request(path: str) -> PodRequest:
    """Return what a path within an edge cluster asks for; raises ``TunnelRequestError``."""
    words = path.split("/")
    named, rest = words[4:5], words[5:]
    if tuple(words[:4]) == _PREFIX and rest[:1] == [PODS] and len(rest) <= 3:
        namespace, pod, action = *named, *rest[1:], *("",) * (3 - len(rest))
        names = (namespace, pod) if len(rest) > 1 else (namespace,)
        known = action in RUNNING or action == LOG or len(rest) < 3
        if known and all(_NAME.fullmatch(each) for each in names):
            return PodRequest(namespace, pod, action or PODS)
    raise TunnelRequestError(
        f"path {path[:256]!r}: want /api/v1/namespaces/NAMESPACE/pods, one of them, or its log, "
        "exec, attach or portforward"
    )


class Opening(NamedTuple):
    """What a hub asks an edge: a request without a body."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]

    @property
    def upgrade(self) -> str:
        """The protocol that the connection is to be handed over to; empty for a plain request."""
        return self.headers.get("upgrade", "")


def opening_of(method: str, path: str, query: str, headers: Mapping[str, str]) -> bytes:
    """Return a request as it travels; raises ``TunnelRequestError`` for one that does not."""
    asked = Opening(method, path, query, headers)
    _check(asked)
    kept = {name: value for name, value in headers.items() if name in _SENT}
    return orjson.dumps({"method": method, "path": path, "query": query, "headers": kept})


def read_opening(raw: bytes) -> tuple[Opening, PodRequest]:
    """Return the request a hub sent, checked anew; raises ``TunnelRequestError``."""
    found = _mapping(raw)
    headers = found.get("headers")
    method, path, query = (found.get(name) for name in ("method", "path", "query"))
    texts = isinstance(method, str) and isinstance(path, str) and isinstance(query, str)
    if not isinstance(headers, dict) or not texts:
        raise TunnelRequestError("opening: want method, path, query and headers")
    kept = {name: str(value) for name, value in headers.items() if name in _SENT}
    opening = Opening(str(method), str(path), str(query), kept)
    return opening, _check(opening)


def _check(asked: Opening) -> PodRequest:
    wanted = pod_request(asked.path)
    running = wanted.action in RUNNING
    if asked.method not in (("GET", "POST") if running else ("GET",)):
        raise TunnelRequestError(f"method {asked.method[:16]!r}: is not one for {wanted.action}")
    if running and not asked.upgrade:
        raise TunnelRequestError("Upgrade request required")
    if not running and asked.upgrade:
        raise TunnelRequestError(f"{wanted.action} is not for a connection that is upgraded")
    if len(asked.query) > _MAX_QUERY or not _is_line(asked.query):
        raise TunnelRequestError(f"query: want at most {_MAX_QUERY} printable characters")
    if not all(_is_line(value) for value in asked.headers.values()):
        raise TunnelRequestError("headers: want printable characters")
    if wanted.action == PODS and "watch" in dict(parse_qsl(asked.query, keep_blank_values=True)):
        raise TunnelRequestError("pods are read through a tunnel, not watched")
    return wanted


def _is_line(text: str) -> bool:
    return text.isascii() and (not text or text.isprintable())


class TunnelAnswer(NamedTuple):
    """How an edge answers: a status, and what of its headers is passed on."""

    status: int
    content_type: str
    headers: tuple[tuple[str, str], ...]
    protocol: str


def answer_of(status: int, headers: Mapping[str, str]) -> bytes:
    """Return an edge's answer as it travels."""
    kept = {n: v for n, v in headers.items() if n in _RETURNED or n in ("content-type", "upgrade")}
    return orjson.dumps({"status": status, "headers": kept})


def read_answer(raw: bytes, *, upgrade: bool) -> TunnelAnswer:
    """Return the answer an edge sent, which may say anything; raises ``TunnelRequestError``.

    Only an *upgrade* is answered by 101, and nothing comes back as what a browser would run.
    """
    found = _mapping(raw)
    status, headers = found.get("status"), found.get("headers")
    if type(status) is not int or not isinstance(headers, dict):
        raise TunnelRequestError("answer: want a status and headers")
    if not (status == 101 and upgrade) and not 200 <= status < 600:
        raise TunnelRequestError(f"answer: status {status} is none for this request")
    texts = {name: str(value) for name, value in headers.items() if _is_line(str(value))}
    media = texts.get("content-type", "").partition(";")[0].strip()
    kept = _some(texts, _RETURNED)
    return TunnelAnswer(
        status, media if media in _MEDIA else "text/plain", kept, texts.get("upgrade", "")
    )


def _some(headers: Mapping[str, str], names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, headers[name]) for name in sorted(names) if name in headers)


def _mapping(raw: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise TunnelRequestError(f"want a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise TunnelRequestError("want a JSON object")
    return found
