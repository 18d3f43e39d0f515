"""A server whose metrics APIs are made up: what a path answers is set by the test."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import parse_qs

import orjson

from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, Transport


class MetricsApis:
    """Passes everything on but the paths in ``answers``; ``asked`` are the selectors sent there."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.answers: dict[str, Any] = {}
        self.asked: list[dict[str, list[str]]] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if path in self.answers:
            self.asked.append(parse_qs(query))
            return Answer(200, {}, orjson.dumps(self.answers[path]))
        return await self._inner.request(method, path, query, headers, body)

    def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AbstractAsyncContextManager[AnswerStream]:
        return self._inner.stream(method, path, query, headers, body)

    async def close(self) -> None:
        await self._inner.close()
