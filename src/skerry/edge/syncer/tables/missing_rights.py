"""Rights that are missing at the edge, asked about until they are there.

What the edge forbids is tried again with growing patience, soon once a minute; a person who has
just applied the missing rule should see it work at once. So while something is forbidden the edge
is asked every few seconds whether it still is (a SelfSubjectAccessReview, which everybody may
ask): one question stands for all objects of a kind in a namespace.
"""

from __future__ import annotations

import asyncio

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.refs import ObjectRef
from skerry.kit.signal import Signal
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError

_REVIEWS = GroupVersionResource("authorization.k8s.io", "v1", "selfsubjectaccessreviews")
_ASK_SECONDS = 5.0
# Rights are granted by the manifest, all at once: whichever are asked about tell of the others.
_QUESTIONS = 4

# A kind in a namespace; empty for cluster-scoped ones.
NamespacedKind = tuple[GroupResource, str]


class MissingRights:
    """Sends ``granted`` for each place where what was forbidden is allowed now."""

    def __init__(self, edge: Client) -> None:
        self._edge = edge
        self.granted = Signal[[GroupResource, str]]()
        # What was last refused, by place; the longest unasked first.
        self._missing: dict[NamespacedKind, str] = {}
        self._any = asyncio.Event()

    def miss(self, ref: ObjectRef, verb: str) -> None:
        """Take it that *verb* was forbidden for *ref*."""
        self._missing.setdefault((ref.group_resource, ref.namespace), verb)
        self._any.set()

    async def run(self) -> None:
        """Ask, as long as something is missing, until cancelled."""
        while True:
            await self._any.wait()
            await self._edge.clock.sleep(_ASK_SECONDS)
            if await self._any_granted(_QUESTIONS):
                await self._any_granted(len(self._missing))
            if not self._missing:
                self._any.clear()

    async def _any_granted(self, questions: int) -> bool:
        found = False
        for place in list(self._missing)[:questions]:
            verb = self._missing.pop(place)
            if await self._allowed(place, verb):
                found = True
                self.granted.send(*place)
            else:
                self._missing.setdefault(place, verb)
        return found

    async def _allowed(self, place: NamespacedKind, verb: str) -> bool:
        kind, namespace = place
        attributes = {"verb": verb, "group": kind.group, "resource": kind.resource}
        if namespace:
            attributes["namespace"] = namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {"resourceAttributes": attributes},
        }
        try:
            answer = await self._edge.create(_REVIEWS, review)
        except (ApiError, TransportError):
            return False  # the ordinary patience remains
        return bool((answer.get("status") or {}).get("allowed"))
