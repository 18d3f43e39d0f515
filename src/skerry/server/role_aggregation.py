"""Aggregated ClusterRoles, with the rules they gather written into them.

Decisions never depend on this: the authorizer gathers rules itself. It is for people, and for
programs that read roles. Whenever a ClusterRole changes, those of its cluster that aggregate are
worked out anew and written if they differ.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.logic.machinery.rbac.policy import GROUP
from skerry.logic.machinery.rbac.rules import Rule, TooManyRights
from skerry.server.change import Change
from skerry.server.codec import decode, encode
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Conflict, Store, Write

# No object that a client may write is larger; what gathers more keeps what it shows.
_MAX_BYTES = 3 << 20
_PREFIX = type_prefix(GROUP, "clusterroles")


class GatheredRules(Protocol):
    """What knows the effective rules of roles."""

    def cluster_role_rules(self, cluster: str, name: str) -> tuple[Rule, ...] | None:
        """Return the rules of a ClusterRole, gathered; None when there is no such role.

        Raises TooManyRights where it gathers more than is looked at.
        """


class RoleAggregation:
    """Keeps the rules of aggregated ClusterRoles up to date in the store."""

    def __init__(self, store: Store, dispatcher: Dispatcher, rules: GatheredRules) -> None:
        self._store = store
        self._rules = rules
        self._due: dict[str, None] = {}
        self._pending = asyncio.Event()
        dispatcher.observe(_PREFIX, self._changed)

    def _changed(self, change: Change) -> None:
        self._due[ObjectKey.parse(change.event.key).cluster] = None
        self._pending.set()

    async def run(self) -> None:
        """Follow changes until cancelled; begin with what is there."""
        for entry in (await self._store.range(_PREFIX)).entries:
            self._due[ObjectKey.parse(entry.key).cluster] = None
        self._pending.set()
        while True:
            await self._pending.wait()
            self._pending.clear()
            while self._due:
                cluster = next(iter(self._due))
                del self._due[cluster]
                await self._refresh(cluster)

    async def _refresh(self, cluster: str) -> None:
        prefix = type_prefix(GROUP, "clusterroles", cluster)
        for entry in (await self._store.range(prefix)).entries:
            if b'"aggregationRule"' not in entry.value:
                continue
            # One a turn: there may be many, and each may gather much.
            await asyncio.sleep(0)
            value = self._gathered(cluster, decode(entry.value, entry.revision))
            if value is None or len(value) > _MAX_BYTES:
                continue
            try:
                await self._store.commit([Write(entry.key, value, expected=entry.revision)])
            except Conflict:
                # The other write has enqueued it again.
                continue

    def _gathered(self, cluster: str, role: Object) -> bytes | None:
        """Return what is to be stored of *role*; None when that is there, or cannot be said."""
        try:
            gathered = self._rules.cluster_role_rules(cluster, role["metadata"]["name"])
        except TooManyRights:
            return None
        if not role.get("aggregationRule") or gathered is None:
            return None
        wanted = [rule.to_object() for rule in gathered]
        if (role.get("rules") or []) == wanted:
            return None
        role["rules"] = wanted
        return encode(role)
