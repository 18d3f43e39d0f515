"""Whatever the server sends a worker arrives as it was, and nothing else is taken."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from skerry.api.kinds import ResourceInfo
from skerry.server.offload.messages import (
    Change,
    Check,
    Document,
    Done,
    Draft,
    Finish,
    Job,
    Missing,
    Refused,
    Render,
    Result,
    Task,
    TypeRef,
    decode_job,
    decode_result,
    encode,
)
from skerry.server.request.info import RequestInfo
from skerry.server.request.options import WriteOptions

INFO = ResourceInfo("apps", "v1", "deployments", "Deployment", True)


@pytest.mark.parametrize(
    "task",
    [
        Draft("create", "now", "uid", "x"),
        Change("apply", "now", b"\x00\xff", 7, "status"),
        Finish(b"{}", b"owned", b"old", 7),
        Render(b"{}", 7, datetime(2030, 1, 1, tzinfo=UTC), item=True),
        Check("schema", [b"a", b"b"]),
        Document("v3", "apps", "v1"),
    ],
    ids=lambda task: type(task).__name__,
)
def test_a_job_arrives_as_it_was_sent(task: Task) -> None:
    types = [TypeRef("crd", "key", INFO, "hash", b"\x01")]
    job = Job(types, RequestInfo("/x", "create"), "a=b", {"h": "v"}, b"{}", WriteOptions(), task)
    assert decode_job(encode(job)) == job


@pytest.mark.parametrize(
    "result",
    [
        Done(b"text", unchanged=True, warnings=["w"], cpu_seconds=0.5),
        Refused(409, {"reason": "Conflict"}, {"Retry-After": "1"}),
        Missing(["key"]),
    ],
    ids=lambda result: type(result).__name__,
)
def test_a_result_arrives_as_it_was_sent(result: Result) -> None:
    assert decode_result(encode(result)) == result


@pytest.mark.parametrize("text", [b"", b"\x80", b"junk", msgspec.msgpack.encode({"type": "Else"})])
def test_what_is_no_message_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_result(text)
    with pytest.raises(msgspec.DecodeError):
        decode_job(text)
