"""A hub that answers discovery and single reads, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.runtime.client import EVERYWHERE, Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.informer import InformerFactory
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport

_VERBS = ["create", "delete", "get", "list", "update", "watch"]


class Hub(AnsweringTransport):
    def __init__(self) -> None:
        # Objects by the path they are read at; discovery fails while ``stale``.
        self.objects: dict[str, Object] = {}
        self.resources: dict[str, list[Object]] = {
            "/api/v1": [_resource("configmaps"), _resource("namespaces"), _resource("events")],
            "/apis/apps/v1": [_resource("deployments"), _resource("deployments/status")],
        }
        self.stale = False
        client = Client(self, "", EVERYWHERE)
        ids = SeededIds(1)
        self.context = ControllerContext(client, InformerFactory(client, ids=ids), ids)

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        local = path.split("/", 3)[3] if path.startswith("/clusters/") else path
        answer = self._discovery(f"/{local}") or self.objects.get(path)
        if answer is None:
            status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": path}
            return Answer(404, {}, orjson.dumps(status))
        return Answer(200, {"content-type": "application/json"}, orjson.dumps(answer))

    def _discovery(self, path: str) -> Any:
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            groups = [_group(name) for name in self.resources if name.startswith("/apis/")]
            return {"kind": "APIGroupList", "groups": groups}
        if path in self.resources and not self.stale:
            return {"kind": "APIResourceList", "resources": self.resources[path]}
        return None


def _group(path: str) -> Object:
    _, _, name, version = path.split("/")
    found = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [found], "preferredVersion": found}


def _resource(name: str) -> Object:
    kind = name.partition("/")[0].removesuffix("s").capitalize()
    namespaced = name != "namespaces"
    return {"name": name, "kind": kind, "namespaced": namespaced, "verbs": _VERBS}
