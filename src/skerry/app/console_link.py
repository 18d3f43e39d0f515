"""What a hub and a console in a process of its own say to each other.

Three ways lead from one to the other. Ordinary requests, those of the informers and those that
answer questions, go to a listener of the hub on loopback which takes the user from the request:
who knows the secret of the link says who asks, and only the console knows it. What is asked about
(whom a credential stands for, who may list what, where a workspace is) goes between the two as
between processes of a group. And that rights have changed stands in memory that both see, so that
no turn of any tab shows what nobody may see any more because a message was late.
"""

from __future__ import annotations

import base64
import hmac
import mmap
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec

from skerry.app.process_peers import GroupName
from skerry.logic.machinery.oidc import OidcSettings
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    UpgradedLine,
    UpgradingTransport,
)
from skerry.server.user import User

HUB, CONSOLE = 0, 1
# The questions that the hub answers, and those that the console does.
WHOSE, RIGHTS, FACTS, RECORD, READY = "whose", "rights", "facts", "record", "ready"
VISIT, CERTIFICATES = "visit", "certificates"
_SCHEME = "Console "
_WORDS, _WORD_BYTES = 2, 8


class Certificates(msgspec.Struct, array_like=True):
    """What the console's listener shows."""

    own: tuple[bytes, bytes]
    given: tuple[bytes, bytes] | None
    names: tuple[str, ...]
    to_all: bool


class SigningIn(msgspec.Struct, array_like=True):
    """How people sign in at an issuer; files are named, and read by the process itself."""

    oidc: OidcSettings
    ca_file: str
    secret_file: str
    scopes: tuple[str, ...]


class Start(msgspec.Struct, array_like=True):
    """What a console's process reads first; nothing of it is in its arguments."""

    data_dir: str
    hub_url: str
    bind_address: str
    tls_sans: tuple[str, ...]
    drain_seconds: float
    given: tuple[str, str] | None
    verbosity: int
    log_format: Literal["text", "json"]
    group: tuple[str, str]
    # Where the hub takes requests of the console, and by what it knows them.
    port: int
    secret: str
    # Descriptors: those that listen, and the memory of ``Versions``.
    sockets: tuple[int, ...]
    versions: int
    tunnels: bool
    certificates: Certificates
    signing_in: SigningIn | None = None

    @property
    def name(self) -> GroupName:
        return GroupName(*self.group)


class Whose(msgspec.Struct, array_like=True):
    """Whom a credential stands for; otherwise the code and the sentence that refuse it."""

    user: User | None
    code: int = 0
    message: str = ""


# (who, in which cluster, verb, group, version, resource)
Question = tuple[User, str, str, str, str, str]


class Asked(msgspec.Struct, array_like=True):
    """Questions about rights, and paths to be found."""

    rights: list[Question]
    clusters: list[str]
    paths: list[str]


class Replies(msgspec.Struct, array_like=True):
    """The answers, in their order."""

    rights: list[bool]
    clusters: list[str]
    paths: list[str | None]


class Recorded(msgspec.Struct, array_like=True):
    """A request to the console that is counted and audited."""

    method: str
    path: str
    verb: str
    user: User | None
    status: int
    address: str
    agent: str


class Visiting(msgspec.Struct, array_like=True):
    """A request on the API's own port about the console."""

    extension: str
    method: str
    query: str
    headers: dict[str, str]
    certificate: bytes | None
    cluster: str
    user: User


class Visited(msgspec.Struct, array_like=True):
    """How it was answered."""

    status: int
    body: bytes
    headers: list[tuple[str, str]]


class Versions:
    """Two words of shared memory that differ whenever somebody may see more or less.

    The hub writes them, the console reads them: how often rights have changed, and how many
    workspaces there are. Each is one aligned word, so that no lock is needed.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._words = memoryview(mmap.mmap(descriptor, _WORDS * _WORD_BYTES)).cast("Q")

    @classmethod
    def new(cls) -> Versions:
        """Return one of the hub's."""
        descriptor = os.memfd_create("skerry-console")
        os.ftruncate(descriptor, _WORDS * _WORD_BYTES)
        return cls(descriptor)

    def rights_changed(self) -> None:
        self._words[0] += 1

    def note_workspaces(self, count: int) -> None:
        self._words[1] = count

    def read(self) -> tuple[int, int]:
        return self._words[0], self._words[1]


def authorization(secret: str, user: User) -> str:
    """Return the header by which the console says for whom it asks."""
    packed = base64.urlsafe_b64encode(msgspec.msgpack.encode(user)).decode()
    return f"{_SCHEME}{secret} {packed}"


def authorized(secret: str, header: str) -> User | None:
    """Return for whom the console asks; None when somebody else does."""
    given, _, packed = header.removeprefix(_SCHEME).partition(" ")
    if not header.startswith(_SCHEME) or not hmac.compare_digest(given.encode(), secret.encode()):
        return None
    try:
        return msgspec.msgpack.decode(base64.urlsafe_b64decode(packed), type=User)
    except (ValueError, msgspec.MsgspecError):
        return None


class ActingTransport:
    """A way to the hub on which every request is made for one user; *inner* is shared by all."""

    def __init__(self, inner: UpgradingTransport, secret: str, user: User) -> None:
        self._inner = inner
        self._acting = {"authorization": authorization(secret, user)}

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        return await self._inner.request(method, path, query, {**headers, **self._acting}, body)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        acting = {**headers, **self._acting}
        async with self._inner.stream(method, path, query, acting, body) as answer:
            yield answer

    @asynccontextmanager
    async def upgraded(
        self,
        protocol: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        method: str = "GET",
    ) -> AsyncIterator[UpgradedLine]:
        acting = {**headers, **self._acting}
        async with self._inner.upgraded(protocol, path, query, acting, method) as line:
            yield line

    async def close(self) -> None:
        """Leave the connections to the others."""


def packed(message: Any) -> bytes:
    """Return a message as it is sent."""
    return msgspec.msgpack.encode(message)
