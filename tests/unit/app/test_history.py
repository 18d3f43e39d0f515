"""Records are read page by page, however many there are, and the newest are kept."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

import orjson

from skerry.api.objects import Object
from skerry.app.history import history_of
from skerry.app.hub_reading import HubReader
from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.sim.loop import virtual

# More than retention keeps of a placement.
_RECORDS = 60_000


def record(number: int) -> Object:
    return {
        "metadata": {"name": f"web-{number:012}-0000-5c1f2ab0"},
        "time": "2026-09-01T14:05:03.120Z",
        "placement": {"name": "web", "uid": "u"},
        "change": "Held",
        "by": {"controller": "edge-scheduler"},
    }


class Hub(AnsweringTransport):
    """Has very many records, and hands out no more at once than it is asked for."""

    def __init__(self) -> None:
        self.limits: list[int] = []
        self.selectors: set[str] = set()

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        limit, start = int(asked["limit"]), int(asked.get("continue", "0"))
        self.limits.append(limit)
        self.selectors.add(asked.get("labelSelector", ""))
        end = min(start + limit, _RECORDS)
        metadata = {"resourceVersion": "1", "continue": str(end) if end < _RECORDS else ""}
        items = [record(number) for number in range(start, end)]
        return Answer(200, {}, orjson.dumps({"metadata": metadata, "items": items}))


@virtual
async def test_of_very_many_records_the_newest_are_read_page_by_page() -> None:
    hub = Hub()
    client = Client(hub, clock=LoopClock())
    reader = HubReader(client, client, client, "root:shop", clock=LoopClock())
    found = await history_of(reader, "web")
    assert max(hub.limits) <= 1_000
    assert hub.selectors == {"edge.kcp.io/source-placement=web"}
    names = [each["metadata"]["name"] for each in found.objects]
    assert (len(names), names[-1]) == (50_000, record(_RECORDS - 1)["metadata"]["name"])
