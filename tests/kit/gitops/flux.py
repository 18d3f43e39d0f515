"""What Flux's kustomize-controller asks of a cluster: its manager of server-side apply.

Definitions and Namespaces go first and are waited for. Each object is applied as a trial, compared
with what is there, and applied when it differs. What the inventory had before and has no more is
deleted by its UID.
"""

from __future__ import annotations

from typing import Any

from tests.kit.gitops.asking import Answer, Server
from tests.kit.gitops.shapes import Shape, shape

MANAGER = "fieldManager=kustomize-controller&force=true"
OWNER = {
    "kustomize.toolkit.fluxcd.io/name": "shop",
    "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
}


class SsaManager:
    """Applies and prunes, and keeps the shape of every answer."""

    def __init__(self, server: Server) -> None:
        self.shapes: dict[str, Shape] = {}
        self.inventory: dict[str, str] = {}
        self._server = server

    def apply(self, collection: str, obj: dict[str, Any]) -> str:
        """Apply one object; returns what that came to: created, configured or unchanged."""
        owned = {**obj, "metadata": {**obj["metadata"], "labels": OWNER}}
        name = obj["metadata"]["name"]
        path = f"{collection}/{name}"
        existing = self._ask("get", "GET", path)
        trial = self._applied("trial", f"{path}?dryRun=All&{MANAGER}", owned)
        assert trial.status in (200, 201), trial.raw
        if existing.status == 200 and _content(existing.body) == _content(trial.body):
            self.inventory[path] = existing.body["metadata"]["uid"]
            return "unchanged"
        result = "configured" if existing.status == 200 else "created"
        applied = self._applied(result, f"{path}?{MANAGER}", owned)
        assert applied.status in (200, 201), applied.raw
        self.inventory[path] = applied.body["metadata"]["uid"]
        return result

    def wait_for_definition(self, path: str) -> None:
        """Wait as kstatus does for a definition: until it is established."""
        for _ in range(100):
            found = self._ask("definition", "GET", path).body
            conditions = (found.get("status") or {}).get("conditions") or ()
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return
        raise AssertionError(f"{path} is not established: {conditions}")

    def prune(self, wanted: set[str]) -> None:
        """Delete what the inventory has and *wanted* has not."""
        for path in sorted(self.inventory.keys() - wanted):
            there = self._ask("before pruning", "GET", path)
            uid = self.inventory.pop(path)
            assert there.body["metadata"]["uid"] == uid
            options = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Background",
                "preconditions": {"uid": uid},
            }
            self._ask("prune", "DELETE", path, options)
            self._ask("pruned", "GET", path)

    def _applied(self, name: str, path: str, obj: dict[str, Any]) -> Answer:
        return self._ask(name, "PATCH", path, obj, Content_Type="application/apply-patch+yaml")

    def _ask(self, name: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        answer = self._server.ask(method, path, body, **headers)
        kind = path.partition("?")[0].rsplit("/", 2)[1]
        self.shapes.setdefault(f"{name} {kind}: {answer.status}", shape(answer))
        return answer


def _content(obj: dict[str, Any]) -> dict[str, Any]:
    """Return what is compared of an object: nothing that a server keeps of it."""
    metadata = obj["metadata"]
    kept = {name: metadata.get(name) for name in ("labels", "annotations", "name", "namespace")}
    skipped = ("metadata", "status")
    return {"metadata": kept, **{k: v for k, v in obj.items() if k not in skipped}}
