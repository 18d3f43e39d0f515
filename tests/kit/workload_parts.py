"""Owners and pods that the rules of workloads are tried on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.api.objects import Object

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def owner(uid: str = "u1", **metadata: Any) -> Object:
    return {
        "metadata": {"name": "owner", "namespace": "ns", "uid": uid, **metadata},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}},
    }


def pod(name: str, owned_by: str = "", labels: Object | None = None, **metadata: Any) -> Object:
    found: Object = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **metadata}
    found["labels"] = {"a": "b"} if labels is None else labels
    if owned_by:
        found["ownerReferences"] = [{"uid": owned_by, "controller": True, "kind": "X", "name": "x"}]
    return {"metadata": found, "spec": {}, "status": {}}
