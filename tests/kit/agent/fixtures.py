"""Containers, volumes and what they leave behind, as tests of the agent ask for them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent.environment import (
    Facts,
)
from skerry.edge.agent.logs import LogOptions, read_log
from tests.kit.agent.harness import (
    Edge,
    container,
)

PAGES = "/usr/local/apache2/htdocs"


def httpd(**more: Any) -> Object:
    mount = {"name": "pages", "mountPath": PAGES}
    ports = [{"name": "http", "containerPort": 80, **more.pop("port", {})}]
    return container("httpd:2.4", ports=ports, volumeMounts=[mount], **more)


def pages(name: str) -> Object:
    return {"name": "pages", "configMap": {"name": name}}


def record(edge: Edge, pod: Object, attempt: int = 0, node: str = "node-0") -> Object:
    uid = pod["metadata"]["uid"]
    path = edge.root / node / uid / "containers" / "c" / str(attempt) / "record.json"
    found: Object = json.loads(path.read_text())
    return found


async def log(
    edge: Edge, pod: Object, name: str = "c", *, previous: bool = False, **options: Any
) -> str:
    life = edge.by_name["node-0"].life(pod["metadata"]["uid"], name)
    assert life is not None
    path = life.log_path(previous=previous)
    assert path is not None
    return b"".join([c async for c in read_log(path, LogOptions(**options))]).decode()


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


POD: Object = {
    "metadata": {
        "name": "web",
        "namespace": "ns",
        "uid": "u1",
        "labels": {"b": "2", "a": 'say "hi"'},
    },
    "spec": {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "default"},
}


FACTS = Facts(POD, "node-1", "172.18.0.2", "10.244.0.2", {"cpu": "4", "memory": "1Gi"})
