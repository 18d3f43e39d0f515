"""Scripts that ask how the components are doing get an answer."""

from __future__ import annotations

from datetime import UTC, datetime

from skerry.server.subresources.components import ComponentStatuses
from skerry.store.base import Unavailable
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import Server, serving

_PATH = "/api/v1/componentstatuses"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Unreachable(MemoryStore):
    """A store that cannot be asked."""

    async def revision(self) -> int:
        raise Unavailable("no leader")


def _statuses(store: MemoryStore, *, runs_controllers: bool = True) -> ComponentStatuses:
    return ComponentStatuses(store, lambda: datetime.now(UTC), runs_controllers=runs_controllers)


async def _healthy(server: Server) -> dict[str, str]:
    found = await server.get(_PATH)
    assert found.warnings == ['299 - "v1 ComponentStatus is deprecated in v1.19+"']
    assert found.body["metadata"] == {}
    return {
        item["metadata"]["name"]: item["conditions"][0]["status"] for item in found.body["items"]
    }


async def test_what_is_known_is_reported() -> None:
    handler = _statuses(MemoryStore("s")).handle
    async with serving(virtual={("", "componentstatuses"): handler}) as server:
        assert await _healthy(server) == {
            "scheduler": "Unknown",
            "controller-manager": "True",
            "etcd-0": "True",
        }
        one = await server.get(f"{_PATH}/etcd-0")
        assert one.body["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
        assert (await server.get(f"{_PATH}/absent")).status == 404
        rows = (await server.get(_PATH, headers={"accept": _TABLE})).body["rows"]
        assert [row["cells"][:2] for row in rows][2] == ["etcd-0", "Healthy"]


async def test_a_store_out_of_reach_and_controllers_elsewhere_are_not_healthy() -> None:
    handler = _statuses(Unreachable("s"), runs_controllers=False).handle
    async with serving(virtual={("", "componentstatuses"): handler}) as server:
        found = await _healthy(server)
        assert (found["controller-manager"], found["etcd-0"]) == ("False", "False")
