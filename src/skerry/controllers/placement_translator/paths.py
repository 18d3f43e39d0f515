"""Paths of workspaces that want the same name at an edge, read when rows wait for them.

People hear of each other by path, and hand over by path; the tables know clusters. A path never
changes, and few workspaces ever need theirs known here, so each is read once, when it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skerry.api.errors import ApiError
from skerry.api.kcp.resources import LOGICAL_CLUSTERS
from skerry.api.refs import PATH_ANNOTATION, ClusterName
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError

_LOGICAL_CLUSTER = "cluster"  # the only one of each workspace
_log = Logger("placement-translator")


class WorkspacePaths:
    """Reads paths one after the other; *take* gets each, empty where there is none to be read."""

    def __init__(
        self, client: Client, ids: IdSource, take: Callable[[ClusterName, str], None]
    ) -> None:
        self._client = client
        self._ids = ids
        self._take = take
        self._wanted: dict[ClusterName, None] = {}
        self._changed = asyncio.Event()

    def read(self, cluster: ClusterName) -> None:
        """Have the path of a workspace read."""
        self._wanted[cluster] = None
        self._changed.set()

    async def run(self) -> None:
        """Read what is wanted until cancelled."""
        while True:
            self._changed.clear()
            for cluster in list(self._wanted):
                path = await self._path(cluster)
                del self._wanted[cluster]
                self._take(cluster, path)
            if not self._wanted:
                await self._changed.wait()

    async def _path(self, cluster: ClusterName) -> str:
        backoff, attempt = Backoff(min_seconds=0.1, max_seconds=30.0), 0
        client = self._client.for_cluster(cluster)
        while True:
            try:
                found = await client.get(LOGICAL_CLUSTERS, _LOGICAL_CLUSTER)
            except (ApiError, TransportError) as error:
                if isinstance(error, ApiError) and error.code < 500 and error.code != 429:
                    return ""  # the workspace is gone, or its path is not for us to know
                attempt += 1
                _log.warning("path not read", key=cluster, attempt=attempt, error=error)
                await client.clock.sleep(backoff.seconds(attempt, self._ids))
            else:
                return str((found["metadata"].get("annotations") or {}).get(PATH_ANNOTATION, ""))
