"""Whether the edge answers, and is still the edge it was.

An edge that was wiped answers with a history that begins anew, and a watch resumed from the old
one may wait for ever. Its ``kube-system`` Namespace has a UID that only a new cluster changes; one
look per heartbeat, at a server next door, tells. A server that gives no answer has nothing to
report, however well its syncer is.
"""

from __future__ import annotations

from skerry.api.errors import ApiError, Forbidden, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.kit.log import Logger
from skerry.kit.signal import Signal
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError

_NAMESPACES = GroupVersionResource("", "v1", "namespaces")

_log = Logger("syncer-edge")


class EdgeWitness:
    """Sends ``changed`` once, when the edge has become another cluster."""

    def __init__(self, edge: Client, seconds: float) -> None:
        self._edge = edge
        self._seconds = seconds
        self.changed = Signal[[]]()
        # Whether it answered when it was last looked at.
        self.answers = True
        self._known = ""

    async def run(self) -> None:
        """Look until the edge changes or may not be looked at."""
        while True:
            try:
                uid = await self._identity()
            except (Forbidden, NotFound):
                return
            except ApiError:
                uid, self.answers = self._known, True
            except TransportError:
                uid, self.answers = self._known, False
            else:
                self.answers = True
            if self._known and uid != self._known:
                _log.warning("the edge is another cluster than before", was=self._known, now=uid)
                self.changed.send()
                return
            self._known = uid
            await self._edge.clock.sleep(self._seconds)

    async def _identity(self) -> str:
        found = await self._edge.get(_NAMESPACES, "kube-system", metadata_only=True)
        return str(found["metadata"]["uid"])
