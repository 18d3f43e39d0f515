"""ComponentStatuses: how what a cluster is made of is doing, for ``kubectl get componentstatuses``.

They are not stored: the store is asked when somebody asks, controllers run in this process or they
do not, and of a scheduler nothing is known here. Deprecated by Kubernetes, and still the first
thing many scripts look at.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from skerry.api.objects import Object
from skerry.server.http.message import Answer, Response
from skerry.server.request.call import Call
from skerry.server.response.rendering import representation
from skerry.store.base import Store, StoreError

_DEPRECATED = "v1 ComponentStatus is deprecated in v1.19+"


class ComponentStatuses:
    """Answers for the components of one server."""

    def __init__(
        self, store: Store, now: Callable[[], datetime], *, runs_controllers: bool
    ) -> None:
        self._store = store
        self._now = now
        self._runs_controllers = runs_controllers

    async def handle(self, call: Call) -> Answer:
        """Answer a get or a list."""
        call.warnings.append(_DEPRECATED)
        found = {status["metadata"]["name"]: status for status in await self._statuses()}
        shown = representation(call, self._now)
        if not call.info.name:
            body = shown.of_objects(list(found.values()))
        elif call.info.name in found:
            body = shown.of_object(found[call.info.name])
        else:
            raise call.not_found()
        return Response(body=body, content_type=shown.content_type)

    async def _statuses(self) -> list[Object]:
        controllers = ("True", "ok") if self._runs_controllers else ("False", "run elsewhere")
        return [
            _status("scheduler", "Unknown", "runs elsewhere"),
            _status("controller-manager", *controllers),
            await self._store_status(),
        ]

    async def _store_status(self) -> Object:
        try:
            await self._store.revision()
        except StoreError as error:
            return _status("etcd-0", "False", str(error))
        return _status("etcd-0", "True", "ok")


def _status(name: str, healthy: str, message: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ComponentStatus",
        "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": healthy, "message": message}],
    }
