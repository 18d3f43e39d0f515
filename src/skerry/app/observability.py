"""Limits, metrics, audit and health put together."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.server.engine import Flow, PathHandler, Recorder
from skerry.server.http.message import Answer, Request, Response, User
from skerry.server.request_info import RequestInfo
from skerry.store.base import Store


class _Open:
    def admitted(
        self, info: RequestInfo, user: User
    ) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    def finished(
        self, request: Request, info: RequestInfo, user: User | None, answer: Answer
    ) -> None:
        return None


@dataclass(slots=True)
class Observability:
    """What watches over a server."""

    flow: Flow
    recorder: Recorder
    paths: Mapping[str, PathHandler] = field(default_factory=dict)
    trees: Mapping[str, PathHandler] = field(default_factory=dict)

    def started(self) -> None:
        return None

    def stopping(self) -> None:
        return None

    def close(self) -> None:
        return None


async def _ok(_: Request, __: str) -> Answer:
    return Response(body=b"ok", content_type="text/plain")


def build_observability(settings: ServerSettings, store: Store, clock: Clock) -> Observability:
    """Put it together."""
    everything = _Open()
    return Observability(
        everything, everything, trees={"/healthz": _ok, "/livez": _ok, "/readyz": _ok}
    )
