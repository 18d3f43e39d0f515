"""A quota is enqueued by what it counts, in its namespace or in its whole cluster."""

from __future__ import annotations

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.controllers.core.quota.keys import (
    IN_NAMESPACE,
    QUOTAS,
    by_cluster,
    enqueue_on_content,
)
from skerry.runtime.index import by_namespace
from tests.kit.caches import cache, drained, owned, queue_of_keys

PODS, SECRETS = GroupResource("", "pods"), GroupResource("", "secrets")


def quota(name: str, namespace: str = "shop", **hard: str) -> Object:
    return owned(name, namespace=namespace, spec={"hard": hard})


async def test_content_enqueues_the_quotas_of_its_namespace_that_count_it() -> None:
    quotas = cache(
        QUOTAS,
        quota("pods", pods="5"),
        quota("secrets", secrets="5"),
        quota("far", "bank", pods="5"),
        indexes={IN_NAMESPACE: by_namespace},
    )
    queue = queue_of_keys()
    handle = enqueue_on_content(queue.add, PODS, quotas.index, clusters=False)
    handle(None, owned("p"))
    assert await drained(queue) == ["shop/pods"]
    handle(owned("p"), None)
    assert await drained(queue) == ["shop/pods"]
    other = enqueue_on_content(queue.add, SECRETS, quotas.index, clusters=True)
    other(None, owned("s"))
    assert await drained(queue) == ["shop/secrets"]


def test_objects_are_found_by_their_cluster() -> None:
    there = owned("x", metadata={"annotations": {"kcp.io/cluster": "one"}})
    assert list(by_cluster(there)) == ["one"]
