"""Owners, templates and suffixes of names that the workload controllers are tried on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.api.objects import Object

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


LABELS = {"app": "web"}


def template(image: str = "one") -> Object:
    return {
        "metadata": {"labels": dict(LABELS)},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def owner(name: str, **spec: Any) -> Object:
    wanted = {"selector": {"matchLabels": LABELS}, "template": template(), **spec}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": wanted}


def suffixes() -> tuple[str, ...]:
    return tuple(f"x{n:03d}" for n in range(40))
