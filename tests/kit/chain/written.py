"""What was written to a hub's store, write by write: invariants hold after each of them."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.store.memory import MemoryStore


class Write(NamedTuple):
    """One write; ``obj`` is None where the object was removed."""

    revision: int
    kind: tuple[str, str]
    cluster: str
    key: str
    name: str
    obj: Object | None


async def writes(store: MemoryStore, *kinds: GroupVersionResource) -> list[Write]:
    """Return every write of objects of *kinds*, in order."""
    found, wanted = [], {kind.group_resource for kind in kinds}
    for event in await store.history("", after=0, limit=1_000_000):
        # Group, resource with the hash of its export, cluster, namespace, name.
        _, group, resource, cluster, *_, name = event.key.split("/")
        kind = (group, resource.partition(":")[0])
        if kind in wanted:
            value = event.value
            obj = orjson.loads(value[value.index(b"{") :]) if value is not None else None
            found.append(Write(event.revision, kind, cluster, event.key, name, obj))
    return found
