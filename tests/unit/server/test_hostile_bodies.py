"""Bodies made to stop a server are answered with a Status, through every door that takes them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.machinery import hostile
from tests.kit.server.harness import Server, serving

MAPS = "/api/v1/namespaces/default/configmaps"


async def doors(server: Server, body: bytes) -> list[int]:
    """Return how each request that takes YAML is answered."""
    yaml: dict[str, Any] = {"content_type": "application/yaml"}
    sent = [
        await server.create(MAPS, body, **yaml),
        await server.put(f"{MAPS}/a", body, **yaml),
        await server.patch(f"{MAPS}/a?fieldManager=m", body, "apply"),
        await server.request("DELETE", f"{MAPS}/a", body, **yaml),
        await server.create("/api/v1/namespaces/default/pods/p/eviction", body, **yaml),
        await server.create("/api/v1/namespaces/default/serviceaccounts/a/token", body, **yaml),
        await server.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, **yaml),
    ]
    assert all(reply.body["kind"] == "Status" and reply.body["message"] for reply in sent)
    return [reply.status for reply in sent]


# Those of many values are read up to the limit, which takes a while and is tested elsewhere.
@pytest.mark.parametrize("name", sorted(hostile.REFUSED.keys() - {"values", "empty mappings"}))
async def test_hostile_yaml_is_refused_wherever_yaml_is_taken(name: str) -> None:
    async with serving() as server:
        assert set(await doors(server, hostile.REFUSED[name])) <= {400, 413}
        assert (await server.get(MAPS)).status == 200
