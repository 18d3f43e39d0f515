"""Whether a namespace is active, and the CA it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.controllers.core.root_ca.keys import ROOT_CA_NAME
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """An active namespace, its ConfigMap if there is one, and what it should say."""

    key: Key
    config_map: Object | None
    certificate: str


class Observer:
    def __init__(
        self, namespaces: Informer, config_maps: Informer, certificate: Callable[[], str]
    ) -> None:
        self._namespaces = namespaces
        self._config_maps = config_maps
        self._certificate = certificate

    async def observe(self, key: Key) -> Observed | None:
        namespace = self._namespaces.index.get(key)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return None
        config_map = self._config_maps.index.get(Key(key.cluster, key.name, ROOT_CA_NAME))
        return Observed(key, config_map, self._certificate())
