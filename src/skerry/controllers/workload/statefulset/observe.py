"""A StatefulSet, its pods and revisions, and which of its claims are there."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.controllers.workload.events import OWNER_UID, candidates
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """``claims`` are all claims of the namespace that are named like ours."""

    stateful_set: Object
    pods: tuple[Object, ...]
    revisions: tuple[Object, ...]
    claims: tuple[Object, ...] = ()


class Observer:
    """Reads from caches."""

    def __init__(
        self, sets: Informer, pods: Informer, revisions: Informer, claims: Informer
    ) -> None:
        self._sets = sets
        self._pods = pods
        self._revisions = revisions
        self._claims = claims

    async def observe(self, key: Key) -> Observed | None:
        found = self._sets.index.get(key)
        if found is None:
            return None
        pods = candidates(self._pods.index, found)
        revisions = self._revisions.index.by(OWNER_UID, found["metadata"]["uid"])
        names = [
            item["metadata"]["name"] for item in found["spec"].get("volumeClaimTemplates") or ()
        ]
        claims = tuple(
            claim
            for claim in self._claims.index.objects()
            if claim["metadata"].get("namespace") == key.namespace
            and any(claim["metadata"]["name"].startswith(f"{name}-{key.name}-") for name in names)
        )
        return Observed(found, tuple(pods), tuple(revisions), claims)
