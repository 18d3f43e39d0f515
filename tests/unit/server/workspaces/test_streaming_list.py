"""Lists of all clusters, sent as they are read: the same list, whole, of one snapshot."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from skerry.api.keys import ObjectKey
from skerry.server.codec import encode
from skerry.server.http.message import Answer, Request, Response, Stream
from skerry.server.request.call import Call
from skerry.server.rest.read import Reader
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.streaming_list import StreamingLists
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.objects import config_map


class Sender:
    """Takes everything; something else happens after its first piece."""

    def __init__(self, store: MemoryStore, closes: int = 0) -> None:
        self.sent = b""
        self.closed = False
        self.queued_bytes = 0
        self._store = store
        self._drains, self._closes = 0, closes

    def write(self, chunk: bytes) -> None:
        self.sent += chunk

    async def drain(self) -> None:
        self._drains += 1
        if self._drains == 1:
            await self._store.commit([Write(LATE, encode(config_map("late")))])
        self.closed = self._drains == self._closes


def key(number: int) -> str:
    return ObjectKey("", "configmaps", f"c{number % 3}", "ns", f"m{number:04}").path()


# After all others, so that it would come with the last page.
LATE = ObjectKey("", "configmaps", "c9", "ns", "late").path()


async def plain(call: Call) -> Answer:
    return Response(body=b"plain")


async def listed(
    count: int, query: str = "", cluster: str = "*", accept: str = ""
) -> tuple[Answer, MemoryStore]:
    store = MemoryStore("test")
    if count:
        await store.commit(
            [Write(key(number), encode(config_map(f"m{number:04}"))) for number in range(count)]
        )
    dispatcher = Dispatcher(store)
    await dispatcher.start()
    reader = Reader(store, dispatcher, lambda: datetime(2030, 1, 1, tzinfo=UTC))
    request = Request("GET", "/", query, {"accept": accept} if accept else {})
    call = call_of(resource("configmaps"), request=request, verb="list", cluster=cluster)
    return await StreamingLists(store, reader).before(plain)(call), store


async def test_a_large_list_is_sent_whole_and_of_one_moment() -> None:
    answer, store = await listed(1201)
    revision = await store.revision()
    assert isinstance(answer, Stream)
    sender = Sender(store)
    await answer.run(sender)
    found = orjson.loads(sender.sent)
    assert found["kind"] == "ConfigMapList"
    assert found["metadata"]["resourceVersion"] == str(revision)
    names = [item["metadata"]["name"] for item in found["items"]]
    assert sorted(names) == [f"m{number:04}" for number in range(1201)]


async def test_what_the_client_no_longer_takes_is_not_read() -> None:
    answer, store = await listed(1201)
    assert isinstance(answer, Stream)
    sender = Sender(store, closes=1)
    await answer.run(sender)
    assert sender.sent.count(b'"metadata"') < 600


@pytest.mark.parametrize(
    ("count", "options"),
    [
        (5, {}),
        (0, {}),
        (501, {"cluster": "c0"}),
        (501, {"query": "limit=100"}),
        (501, {"query": "labelSelector=a%3Db"}),
        (501, {"query": "resourceVersion=1&resourceVersionMatch=Exact"}),
        (501, {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}),
        (501, {"accept": "application/yaml"}),
    ],
)
async def test_everything_else_is_left_to_the_plain_way(
    count: int, options: dict[str, str]
) -> None:
    answer, _ = await listed(count, **options)
    assert isinstance(answer, Response)
    assert answer.body == b"plain"
