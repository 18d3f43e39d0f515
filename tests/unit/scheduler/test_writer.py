"""What the scheduler writes: only for the very pod that was decided upon."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.scheduler.cache.objects import KINDS
from skerry.scheduler.cache.pod import PodReader
from skerry.scheduler.writer import PODS, ApiWriter, resource_of
from tests.kit.scheduler.fixtures import pod


class Recorder:
    """A client that remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            self.calls.append((name, args, options))
            return args[-1]

        return call


INFO = PodReader().read(pod("p"))


def made() -> tuple[Recorder, ApiWriter]:
    client = Recorder()
    return client, ApiWriter(client)  # type: ignore[arg-type]


async def test_a_binding_names_the_pod_by_its_uid() -> None:
    client, writer = made()
    await writer.bind(INFO, "n")
    ((name, args, options),) = client.calls
    assert (name, args[0], options["subresource"]) == ("create", PODS, "binding")
    assert args[1]["metadata"] == {"name": "p", "namespace": "default", "uid": "p"}
    assert args[1]["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n"}


async def test_a_namesake_is_neither_deleted_nor_described() -> None:
    client, writer = made()
    await writer.delete_pod(INFO)
    await writer.patch_pod_status(INFO, {"nominatedNodeName": "n"})
    (_, deleted, _), (_, patched, options) = client.calls
    assert deleted[3].uid == "p"
    assert patched[2] == {"metadata": {"uid": "p"}, "status": {"nominatedNodeName": "n"}}
    assert (options["kind"], options["subresource"]) == ("strategic", "status")


async def test_other_kinds_are_replaced_where_they_are_kept() -> None:
    client, writer = made()
    obj = {"metadata": {"name": "c"}}
    assert await writer.update("claims", obj) is obj
    assert client.calls[0][1][0] == GroupVersionResource("", "v1", "persistentvolumeclaims")


@pytest.mark.parametrize("attribute", KINDS)
def test_every_store_has_a_resource(attribute: str) -> None:
    found = resource_of(attribute)
    assert found.resource == KINDS[attribute][1]
    assert found.version == "v1"
