"""What is written to the server of exactly one pod, and when that must be tried again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from skerry.api.errors import ApiError, Conflict, Forbidden, InternalError, NotFound
from skerry.edge.agent.pod_api import finish_deletion, write_status
from skerry.runtime.transport import Answer, TransportError
from tests.kit.agent.nodes import HeldNode, pod


class Server:
    """Fails every request so, and keeps what was asked."""

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure
        self.asked: list[tuple[str, str, Any]] = []

    async def request(
        self, method: str, path: str, query: str = "", headers: Any = None, body: bytes = b""
    ) -> Answer:
        self.asked.append((method, path, orjson.loads(body) if body else None))
        if isinstance(self.failure, ApiError):
            return Answer(self.failure.code, {}, orjson.dumps(self.failure.status()))
        if self.failure is not None:
            raise self.failure
        return Answer(200, {}, orjson.dumps(pod()))


def node(root: Path, failure: Exception | None) -> tuple[HeldNode, Server]:
    held, server = HeldNode(root), Server(failure)
    object.__setattr__(held.context, "client", type(held.client)(server))  # type: ignore[arg-type]
    return held, server


# By the failure: whether it is done with.
OUTCOMES = [
    (None, True),
    (NotFound("gone"), True),
    (Conflict("another pod of the same name"), True),
    (InternalError("the disk is full"), False),
    (Forbidden("not for you"), False),
    (TransportError("no answer"), False),
]


@pytest.mark.parametrize(("failure", "done"), OUTCOMES)
async def test_a_status_is_of_exactly_this_pod_and_tried_again_when_the_server_fails(
    tmp_path: Path, failure: Exception | None, *, done: bool
) -> None:
    held, server = node(tmp_path, failure)
    assert await write_status(held.context, pod(), {"phase": "Running"}) is done
    method, path, body = server.asked[0]
    assert (method, path) == ("PATCH", "/api/v1/namespaces/ns/pods/web/status")
    assert body == {"metadata": {"uid": "u1"}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(("failure", "done"), OUTCOMES)
async def test_a_deletion_is_finished_for_exactly_this_pod_and_at_once(
    tmp_path: Path, failure: Exception | None, *, done: bool
) -> None:
    held, server = node(tmp_path, failure)
    assert await finish_deletion(held.context, pod()) is done
    method, path, body = server.asked[0]
    assert (method, path) == ("DELETE", "/api/v1/namespaces/ns/pods/web")
    assert body["gracePeriodSeconds"] == 0
    assert body["preconditions"] == {"uid": "u1"}
