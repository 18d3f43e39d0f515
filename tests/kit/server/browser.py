"""A browser's part of the console's protocol, without one: requests, the cookie, the socket."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson
from wsproto import WSConnection
from wsproto.connection import ConnectionType
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    RejectConnection,
    RejectData,
    TextMessage,
)
from wsproto.events import Request as Opening

from tests.kit.server.hub import Hub

OWN = {"x-skerry-console": "1", "sec-fetch-site": "same-origin"}


@dataclass
class Page:
    """What a browser got."""

    status: int
    headers: dict[str, str]
    body: bytes
    cookies: list[str] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Browser:
    """One browser: a cookie jar with room for one cookie."""

    url: str
    cookie: str = ""

    @property
    def authority(self) -> str:
        return urlsplit(self.url).netloc

    async def fetch(self, method: str, path: str, document: Any = None, **headers: str) -> Page:
        """Send one request, as the console's own page would unless *headers* say otherwise."""
        sent = {"host": self.authority, "connection": "close"}
        if method != "GET":
            sent |= {**OWN, "origin": self.url, "content-type": "application/json"}
        if self.cookie:
            sent["cookie"] = self.cookie
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = b"" if document is None else orjson.dumps(document)
        lines = [f"{name}: {value}" for name, value in sent.items() if value]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, f"content-length: {len(body)}"])
        reader, writer = await self._connect()
        try:
            writer.write(head.encode() + b"\r\n\r\n" + body)
            page = _page(await reader.read())
        finally:
            writer.close()
        if "set-cookie" in page.headers:
            self.cookie = page.headers["set-cookie"].partition(";")[0]
        return page

    async def sign_in(self, hub: Hub, user: str = "kcp-admin") -> Page:
        """Sign in with a code that the hub gives to *user*."""
        made = await hub.ask(user, "POST", "/skerry/console/codes")
        assert made.status == 201, made.body
        return await self.fetch("POST", "/console/session", {"code": made.body["code"]})

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        where = urlsplit(self.url)
        context: ssl.SSLContext | None = None
        if where.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return await asyncio.open_connection(where.hostname, where.port, ssl=context)

    @contextlib.asynccontextmanager
    async def tab(
        self, protocol: str = "skerry.console.v1", **headers: str
    ) -> AsyncIterator[BrowserTab]:
        """Open the socket of a tab; raises ``Refused`` when the server does not take it."""
        reader, writer = await self._connect()
        sent = {"origin": self.url, "sec-fetch-site": "same-origin", "cookie": self.cookie}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        extra = [(name.encode(), value.encode()) for name, value in sent.items() if value]
        framing = WSConnection(ConnectionType.CLIENT)
        opening = Opening(self.authority, "/console/socket", [], extra, [protocol])
        writer.write(framing.send(opening))
        tab = BrowserTab(reader, writer, framing)
        try:
            await tab.accepted()
            yield tab
        finally:
            writer.close()


class Refused(Exception):
    """The server did not take the socket."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body.decode()}")
        self.status = status
        self.body = body


@dataclass
class BrowserTab:
    """The socket of a tab, and what has arrived."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    framing: WSConnection
    _events: list[Event] = field(default_factory=list)
    closed: int = 0

    async def accepted(self) -> None:
        event = await self._event()
        if isinstance(event, RejectConnection):
            body = bytearray()
            while event.has_body and isinstance(part := await self._event(), RejectData):
                body += part.data
                if part.body_finished:
                    break
            raise Refused(event.status_code, bytes(body))
        assert isinstance(event, AcceptConnection), event

    async def _event(self) -> Event:
        async with asyncio.timeout(60):
            while not self._events:
                data = await self.reader.read(65536)
                self.framing.receive_data(data or None)
                self._events += list(self.framing.events())
        return self._events.pop(0)

    def send(self, frame: Any) -> None:
        self.send_text(orjson.dumps(frame).decode())

    def send_text(self, text: str) -> None:
        self.writer.write(self.framing.send(TextMessage(text)))

    async def frame(self) -> Any:
        """Return the next frame; None once the server has closed the socket."""
        text = ""
        while True:
            event = await self._event()
            if isinstance(event, CloseConnection):
                self.closed = int(event.code)
                return None
            if isinstance(event, TextMessage):
                text += event.data
                if event.message_finished:
                    return orjson.loads(text)

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        """Return the first frame that is *wanted*."""
        while True:
            frame = await self.frame()
            assert frame is not None, "the server closed the socket"
            if wanted(frame):
                return frame

    async def ask(self, number: int, kind: str, **given: Any) -> Any:
        """Ask a question; return its answer, or the Status that refuses it."""
        self.send({"id": number, "ask": kind, "with": given})
        frame = await self.until(lambda each: each.get("id") == number)
        return frame["error"] if "error" in frame else frame["set"]


def _page(raw: bytes) -> Page:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers, cookies = {}, []
    for line in lines:
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
        if name.lower() == "set-cookie":
            cookies.append(value)
    return Page(int(first.split(" ")[1]), headers, body, cookies)
