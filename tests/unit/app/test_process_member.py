"""What each process of a group lets in: parts of a server's limits, and enough for each request."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from skerry.api.edge_identity import EDGE_GROUPS
from skerry.api.errors import TooManyRequests
from skerry.app.process_member import flow_share, http_share
from skerry.kit.clock import LoopClock
from skerry.server.batch import Batches
from skerry.server.catalogue import TypeSet
from skerry.server.extensions import BATCH, Visit
from skerry.server.flow import FairFlow, FlowSettings
from skerry.server.http.message import Answer, Request, Response, Stream
from skerry.server.http.settings import HttpSettings
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from tests.kit.server.flow import admitted
from tests.kit.server.harness import MemorySender
from tests.kit.sim.loop import virtual

PART = {"method": "PATCH", "path": "/api/v1/namespaces/default/configmaps/a", "body": {}}
WRITE = RequestInfo("/api/v1/namespaces/default/configmaps/a", "patch", is_resource=True)
USERS = {
    "an edge": User("system:edge:a", groups=EDGE_GROUPS, home="mailbox"),
    "somebody": User("alice", groups=("system:authenticated",)),
    "a controller": User("system:serviceaccount:n:c", groups=("system:serviceaccounts",), home="w"),
}
# How long a write takes, as etcd's do.
WRITE_SECONDS = 0.01


async def codes(flow: FairFlow, user: User, parts: int) -> list[int]:
    """Return how *flow* has the parts of one batch end."""

    async def handle(_: Request) -> Answer:
        try:
            async with admitted(flow, WRITE, user):
                await asyncio.sleep(WRITE_SECONDS)
        except TooManyRequests:
            return Response(429)
        return Response(204)

    body = orjson.dumps({"requests": [PART] * parts})
    visit = Visit(Request("POST", BATCH, body=body), "local", user, TypeSet(()))
    answer = await Batches(handle, LoopClock()).handle(visit)
    assert isinstance(answer, Stream)
    sender = MemorySender()
    await answer.run(sender)
    return [each["code"] for each in sender.lines.get_nowait()["answers"]]


@virtual
@pytest.mark.parametrize("who", USERS)
async def test_no_part_of_a_batch_is_refused_however_many_processes_there_are(who: str) -> None:
    for processes in range(1, 65):
        flow = FairFlow(flow_share(FlowSettings(), processes), LoopClock())
        assert await codes(flow, USERS[who], 100) == [204] * 100, processes


@virtual
@pytest.mark.parametrize("processes", [1, 5, 64])
async def test_two_batches_that_come_together_are_let_in_both(processes: int) -> None:
    """Both connections of an edge may be one process's, and two principals of one workspace."""
    for one, other in ((USERS["an edge"],) * 2, (USERS["a controller"],) * 2):
        flow = FairFlow(flow_share(FlowSettings(), processes), LoopClock())
        both = await asyncio.gather(codes(flow, one, 100), codes(flow, other, 100))
        assert [code for each in both for code in each] == [204] * 200


@virtual
async def test_what_is_beyond_two_batches_is_still_refused() -> None:
    flow = FairFlow(flow_share(FlowSettings(), 64), LoopClock())
    found = await asyncio.gather(*(codes(flow, USERS["an edge"], 100) for _ in range(4)))
    assert any(429 in each for each in found)


@pytest.mark.parametrize("processes", [2, 64])
def test_processes_of_a_group_leave_to_each_other_what_they_cannot_begin(processes: int) -> None:
    whole = HttpSettings()
    part = http_share(whole, processes)
    assert 0 < part.others_seconds < 1
    assert part.waiting == whole.waiting // processes
    assert part.handshakes == whole.handshakes, "what they cost is each process's own"


def test_a_process_that_is_alone_leaves_nothing_to_others() -> None:
    assert http_share(HttpSettings(), 1).others_seconds == HttpSettings().others_seconds == 0
