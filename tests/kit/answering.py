"""A transport that only answers requests, for tests of what needs no streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream


class AnsweringTransport:
    """Streams nothing and holds nothing; whoever derives from it says how requests are answered."""

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        raise NotImplementedError(path)
        yield  # makes this a generator

    async def close(self) -> None:
        """Nothing is held."""


class AnswersBy(AnsweringTransport):
    """Answers by a function of a request's method and path, and notes the methods."""

    def __init__(self, answer: Callable[[str, str], Answer]) -> None:
        self._answer = answer
        self.methods: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.methods.append(method)
        return self._answer(method, path)
