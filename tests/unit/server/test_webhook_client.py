"""Messages about answers of webhooks that are no reviews."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from skerry.logic.machinery.webhook_clients import ClientConfig, client_config
from skerry.server.webhook_client import WebhookError, WebhookReply, reviewed

CLIENT = client_config({"url": "https://h.example.com/p"})


class _Fixed:
    """Answers everything alike."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._reply = WebhookReply(status, headers, body)
        self.queries: list[str] = []

    async def post(
        self, client: ClientConfig, cluster: str, query: str, body: bytes, seconds: float
    ) -> WebhookReply:
        self.queries.append(query)
        return self._reply


async def answer(status: int, body: bytes = b"", seconds: float = 1.0, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await reviewed(_Fixed(status, body, named), CLIENT, "c", b"{}", seconds)


async def test_an_answer_is_decoded() -> None:
    assert await answer(200, b'{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(("seconds", "shown"), [(1.0, "1s"), (1.2, "2s"), (0.1, "1s"), (30, "30s")])
async def test_the_time_a_webhook_has_is_rounded_up(seconds: float, shown: str) -> None:
    client = _Fixed(200, b"{}", {})
    await reviewed(client, CLIENT, "c", b"{}", seconds)
    assert client.queries == [f"timeout={shown}"]


@pytest.mark.parametrize(
    ("status", "body", "media", "expected"),
    [
        (502, b" bad \n", "", 'an error on the server ("bad") has prevented'),
        (502, b"\x00", "image/png", 'an error on the server ("unknown") has prevented'),
        (403, b"go away", "text/plain", "go away"),
        (429, b"", "", "the server has received too many requests"),
        (301, b"", "", "the server responded with the status code 301"),
        (500, b'{"kind":"Status","message":"mine"}', "application/json", "mine"),
        (500, b"{", "application/json", 'an error on the server ("unknown")'),
        (204, b"", "", "0-length response with status code: 204"),
    ],
)
async def test_failures_are_worded_as_by_kubernetes_client(
    status: int, body: bytes, media: str, expected: str
) -> None:
    with pytest.raises(WebhookError) as caught:
        await answer(status, body, content_type=media)
    assert str(caught.value).startswith(expected)
