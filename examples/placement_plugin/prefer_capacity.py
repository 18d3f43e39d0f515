"""A placement plugin: big Locations first, those being emptied not at all."""

from __future__ import annotations

from typing import Any

from skerry.scheduler.framework.status import Status, unresolvable


class PreferCapacity:
    name = "PreferCapacity"

    def __init__(self, args: Any, table: Any) -> None:
        return

    def filter(self, state: Any, wish: Any, location: Any) -> Status | None:
        emptied = location.labels.get("capacity") == "0"
        return unresolvable("location(s) were being emptied") if emptied else None

    def score(self, state: Any, wish: Any, location: Any) -> int:
        return min(100, int(location.labels.get("capacity", "0")))
