"""``kube-system/extension-apiserver-authentication``: how aggregated servers know who asks.

They read there which authorities vouch for clients, and which one for the front proxy that tells
them in headers who asks: this server. Of several servers on one store each adds its own authority.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.kept_objects import keep_up, put
from skerry.kit.clock import Clock
from skerry.runtime.client import Client

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAME, NAMESPACE = "extension-apiserver-authentication", "kube-system"
_INTERVAL_SECONDS = 60.0
_FIXED = {
    "requestheader-allowed-names": json.dumps(["front-proxy-client"]),
    "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
    "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
    "requestheader-username-headers": json.dumps(["X-Remote-User"]),
}
_BUNDLES = ("client-ca-file", "requestheader-client-ca-file")


def joined(known: str, own: str) -> str:
    """Return a bundle with our authorities in it; what others put there stays."""
    end = "-----END CERTIFICATE-----"
    blocks = [part.strip() + "\n" + end for part in (known + own).split(end) if part.strip()]
    return "\n".join(dict.fromkeys(blocks)) + "\n"


class ExtensionAuthentication:
    """Keeps the ConfigMap; the functions return the authorities of clients and of the proxy."""

    def __init__(
        self, client: Client, clients: Callable[[], str], front_proxy: Callable[[], str]
    ) -> None:
        self._client = client
        self._bundles = (clients, front_proxy)

    async def run(self, clock: Clock) -> None:
        """Work until cancelled."""
        await keep_up("extension authentication", self.ensure, clock, _INTERVAL_SECONDS)

    async def ensure(self) -> None:
        """Create the ConfigMap, or add what is missing."""
        await put(self._client, CONFIG_MAPS, NAME, NAMESPACE, self._completed)

    def _completed(self, live: Object | None) -> Object | None:
        known: Object = live or {"metadata": {"name": NAME, "namespace": NAMESPACE}}
        data = known.get("data") or {}
        wanted = dict(_FIXED)
        for name, own in zip(_BUNDLES, self._bundles, strict=True):
            wanted[name] = joined(data.get(name, ""), own())
        return None if data == wanted else {**known, "data": wanted}
