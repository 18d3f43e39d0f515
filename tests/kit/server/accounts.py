"""The objects that tokens are bound to, without a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Objects:
    """The objects tokens are bound to, as (resource, namespace, name, uid)."""

    def __init__(self, *known: tuple[str, str, str, str]) -> None:
        self.found = {(r, ns, n): {"metadata": {"uid": uid}} for r, ns, n, uid in known}
        self.asked = 0

    async def lookup(
        self, cluster: str, resource: str, namespace: str, name: str
    ) -> Mapping[str, Any] | None:
        self.asked += 1
        return self.found.get((resource, namespace, name))
