"""Whether a namespace is active and has its ServiceAccount."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.controllers.core.service_account.keys import DEFAULT_NAME
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """An active namespace."""

    key: Key
    present: bool


class Observer:
    def __init__(self, namespaces: Informer, service_accounts: Informer) -> None:
        self._namespaces = namespaces
        self._service_accounts = service_accounts

    async def observe(self, key: Key) -> Observed | None:
        namespace = self._namespaces.index.get(key)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return None
        wanted = Key(key.cluster, key.name, DEFAULT_NAME)
        return Observed(key, wanted in self._service_accounts.index)
