"""The way from the server to webhooks: what is sent, what may come back, how failures are worded.

The sockets are handed in: whoever assembles the server knows how it reaches others, and which
addresses it may reach. The sentences about failures are those of Kubernetes' client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

import orjson

from skerry.logic.machinery.webhook_clients import ClientConfig

# As large as the largest request: a webhook may answer with a patch of a whole object.
MAX_ANSWER_BYTES: Final = 3 << 20
# How much of an answer that is no review a message repeats.
_SHOWN_CHARACTERS: Final = 2048


class WebhookError(Exception):
    """A webhook was not reached, or gave no answer; the text says why."""


class UnusableClient(WebhookError):
    """A webhook cannot be called as it is configured."""


class WebhookReply(NamedTuple):
    """What came back. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WebhookClient(Protocol):
    """Sends reviews. Safe to use from many tasks at once; connections are kept and shared."""

    async def post(
        self, client: ClientConfig, cluster: str, query: str, body: bytes, seconds: float
    ) -> WebhookReply:
        """Return the answer, whatever its status; ``WebhookError`` when none came in *seconds*.

        A Service is one of *cluster*. Redirections are answers.
        """


async def reviewed(
    sender: WebhookClient, client: ClientConfig, cluster: str, body: bytes, seconds: float
) -> Any:
    """Return the JSON that a webhook answers *body* with; ``WebhookError`` if it is none."""
    # Rounded up, for the webhook to know how long it has.
    query = f"timeout={-int(-seconds // 1)}s"
    reply = await sender.post(client, cluster, query, body, seconds)
    media = reply.headers.get("content-type", "")
    if not 200 <= reply.status < 300:
        raise WebhookError(_failure(reply, media))
    if not reply.body:
        shown = f"{reply.status} and content type: {media or 'application/json'}"
        raise WebhookError(f"0-length response with status code: {shown}")
    try:
        return orjson.loads(reply.body)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise WebhookError(f"couldn't get version/kind; json parse error: {error}") from error


_BY_STATUS: Final[Mapping[int, str]] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
    "processing the request",
}


def _failure(reply: WebhookReply, media: str) -> str:
    """Return what an answer that is no success says."""
    if media.startswith("application/json"):
        try:
            found = orjson.loads(reply.body)
        except (orjson.JSONDecodeError, RecursionError):
            found = None
        if isinstance(found, dict) and found.get("kind") == "Status":
            message = found.get("message")
            if isinstance(message, str):
                return message[:_SHOWN_CHARACTERS]
    said = "unknown"
    if not media or media.startswith("text/"):
        said = reply.body.decode(errors="replace").strip()[:_SHOWN_CHARACTERS]
    known = _BY_STATUS.get(reply.status)
    if known is not None:
        return known
    if reply.status in (403, 415):
        return said
    if reply.status >= 500:
        shown = orjson.dumps(said).decode()
        return f"an error on the server ({shown}) has prevented the request from succeeding"
    return (
        f"the server responded with the status code {reply.status} but did not return more "
        "information"
    )
