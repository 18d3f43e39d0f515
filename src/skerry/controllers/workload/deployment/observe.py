"""A Deployment, the ReplicaSets it has to do with, and whether their pods still run."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.controllers.workload.events import OWNER_UID, candidates
from skerry.logic.workloads.pods import is_finished
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """``running`` are the uids of ReplicaSets that have pods which have not ended."""

    deployment: Object
    replica_sets: tuple[Object, ...]
    running: frozenset[str] = frozenset()


class Observer:
    """Reads from caches."""

    def __init__(self, deployments: Informer, replica_sets: Informer, pods: Informer) -> None:
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._pods = pods

    async def observe(self, key: Key) -> Observed | None:
        deployment = self._deployments.index.get(key)
        if deployment is None:
            return None
        found = candidates(self._replica_sets.index, deployment)
        running = frozenset(
            item["metadata"]["uid"]
            for item in found
            if any(
                not is_finished(pod)
                for pod in self._pods.index.by(OWNER_UID, item["metadata"]["uid"])
            )
        )
        return Observed(deployment, tuple(found), running)
