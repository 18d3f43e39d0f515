"""Sends the requests, and keeps of each answer what two servers can be compared by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from skerry.runtime.transport import Answer, Transport
from tests.kit.differential.cases import Case, Reply, Request, cases, preparation

# Whose names are data, not structure.
_MAPS = frozenset(
    {"labels", "annotations", "data", "stringData", "matchLabels", "selector", "parameters",
     "properties", "hard", "used", "capacity", "allocatable", "requests", "limits", "max", "min",
     "default", "defaultRequest", "fieldsV1", "paths", "definitions"}
)  # fmt: skip


class Answered(NamedTuple):
    """An answer as far as it is compared; ``message`` is for people and is not."""

    status: int
    media: str
    reason: str
    causes: tuple[str, ...]
    warnings: tuple[str, ...]
    shape: tuple[str, ...]
    message: str = ""

    @property
    def compared(self) -> tuple[Any, ...]:
        return self[:-1]


async def ask_everything(transport: Transport) -> dict[str, Answered]:
    """Send every request of every case, one after the other; returns the answers by name."""
    found: dict[str, Answered] = {}
    for case in (preparation(), *cases()):
        await _play(transport, case, found)
    return found


async def _play(transport: Transport, case: Case, found: dict[str, Answered]) -> None:
    request: Request | None = next(case, None)
    while request is not None:
        if request.name in found:
            raise AssertionError(f"two requests are called {request.name!r}")
        answer = await _send(transport, request)
        body = _decoded(answer)
        found[request.name] = answered(answer, body)
        try:
            request = case.send(Reply(answer.status, body))
        except StopIteration:
            request = None


async def _send(transport: Transport, request: Request) -> Answer:
    body = request.body
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    headers = {"accept": request.accept}
    if request.body is not None and request.type:
        headers["content-type"] = request.type
    return await transport.request(request.method, request.path, request.query, headers, raw)


def _decoded(answer: Answer) -> Any:
    if "json" not in answer.headers.get("content-type", ""):
        return None
    try:
        return json.loads(answer.body)
    except ValueError:
        # A watch: no document, or several, of which the first says what they are.
        first, _, _ = answer.body.partition(b"\n")
        return json.loads(first) if first else None


def answered(answer: Answer, body: Any) -> Answered:
    """Return what of an answer is compared."""
    media = answer.headers.get("content-type", "").partition(";")[0]
    warnings = tuple(w for w in answer.headers.get("warning", "").split(", 299 - ") if w)
    if isinstance(body, Mapping) and body.get("kind") == "Status":
        details = body.get("details") or {}
        causes = tuple(
            sorted(
                f"{cause.get('field', '')} {cause.get('reason', '')}"
                for cause in details.get("causes") or ()
            )
        )
        reason, message = str(body.get("reason", "")), str(body.get("message", ""))
        shape = tuple(sorted(_shape({k: body[k] for k in body if k != "details"})))
        return Answered(answer.status, media, reason, causes, warnings, shape, message)
    shape = tuple(sorted(set(_shape(body)))) if body is not None else ()
    return Answered(answer.status, media, "", (), warnings, shape)


def _shape(value: Any, path: str = "") -> Iterator[str]:
    """Yield the places of a document that hold something, and of which type it is.

    What is null or empty is as good as absent to every client.
    """
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key == "managedFields":
                yield f"{path}.managedFields"
            else:
                name = "*" if path.rpartition(".")[2] in _MAPS else key
                yield from _shape(each, f"{path}.{name}")
    elif isinstance(value, list):
        for each in value:
            yield from _shape(each, f"{path}[]")
    elif value is not None:
        yield f"{path} {type(value).__name__}"
