"""FlowSchemas and PriorityLevelConfigurations, as far as a server acts on them.

Every request falls to a FlowSchema, which its answer names by UID, as kube-apiserver's do; how
many fell to each is counted. Its priority level limits how many run at once (``priority_levels``),
besides the rules that share seats out between users (``flow``). FlowSchemas say whether the level
they refer to exists, and what every server is born with comes back when it is deleted.

A server that follows no such objects names none, at the cost of one question a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from skerry.api.keys import PLAIN, ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import set_conditions
from skerry.logic.machinery.flow_bootstrap import flow_control_objects
from skerry.logic.machinery.flow_schemas import (
    GROUP,
    LEVELS,
    SCHEMAS,
    Asked,
    dangling,
    distinguisher,
    in_order,
    level_name,
    matching,
    names_namespaces,
    nominal_seats,
)
from skerry.server.change import Change
from skerry.server.codec import decode, encode
from skerry.server.http.message import Headers
from skerry.server.priority_levels import LevelLane, PriorityLevels
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Conflict, Store, Write

SCHEMA_HEADER = "X-Kubernetes-Pf-Flowschema-Uid"
LEVEL_HEADER = "X-Kubernetes-Pf-Prioritylevel-Uid"
_SCHEMAS, _LEVELS = type_prefix(GROUP, SCHEMAS), type_prefix(GROUP, LEVELS)
# These last as long as they last, and Kubernetes classifies none of them.
_LASTING = frozenset(("attach", "exec", "log", "portforward", "proxy"))
# Users times what they ask for; a server that sees more of it classifies some anew.
_MAX_CACHED = 10_000
# Longer paths lead to nothing, and anybody may ask for them.
_MAX_PATH = 1024


class FlowClass:
    """A FlowSchema with its level and the seats of that, and how many requests fell to it."""

    __slots__ = ("_distinguisher", "dispatched", "headers", "lane", "names")

    def __init__(self, schema: Object, level: Object, lane: LevelLane | None) -> None:
        self._distinguisher = distinguisher(schema)
        self.lane = lane
        self.names = (str(level["metadata"]["name"]), str(schema["metadata"]["name"]))
        self.headers: Headers = (
            (SCHEMA_HEADER, str(schema["metadata"]["uid"])),
            (LEVEL_HEADER, str(level["metadata"]["uid"])),
        )
        self.dispatched = 0

    def flow(self, info: RequestInfo, user: User) -> str:
        """Return the flow that a request belongs to; flows take turns in their level."""
        name = self.names[1]
        if self._distinguisher == "ByUser":
            return f"{name}/{user.name}"
        return f"{name}/{info.namespace}" if self._distinguisher == "ByNamespace" else name


class FlowClasses:
    """The FlowSchemas of a server; without ``follow`` there are none.

    *seats* is how many requests the server runs at once, which priority levels have shares of.
    """

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self.priority_levels = PriorityLevels(seats)
        self._schemas: dict[str, Object] = {}
        self._levels: dict[str, Object] = {}
        self._order: list[Object] = []
        self._by_namespace = False
        self._classes: dict[str, FlowClass] = {}
        self._cache: dict[tuple[object, ...], FlowClass | None] = {}
        self._changed = asyncio.Event()

    async def follow(self, store: Store, dispatcher: Dispatcher) -> None:
        """Read what is there and keep it up; call before the dispatcher runs."""
        for prefix, known in ((_SCHEMAS, self._schemas), (_LEVELS, self._levels)):
            dispatcher.observe(prefix, self._observe, self._forget)
            for entry in (await store.range(prefix)).entries:
                obj = decode(entry.value, entry.revision)
                known[obj["metadata"]["name"]] = obj
        self._settle()

    def headers(self, info: RequestInfo, user: User) -> Headers:
        """Return the headers that say what a request falls to, and count it there."""
        found = self.of(info, user)
        if found is None:
            return ()
        found.dispatched += 1
        return found.headers

    def of(self, info: RequestInfo, user: User) -> FlowClass | None:
        """Return what a request falls to; None of what is not classified."""
        if not self._order or info.subresource in _LASTING:
            return None
        if info.is_resource:
            namespace = info.namespace if self._by_namespace or not info.namespace else "*"
            key: tuple[object, ...] = (
                user.name, user.groups, info.verb, info.group, info.resource, info.subresource,
                namespace,
            )  # fmt: skip
        else:
            key = (user.name, user.groups, info.verb, info.path)
        try:
            return self._cache[key]
        except KeyError:
            found = self._classified(info, user)
        if len(info.path) <= _MAX_PATH:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = found
        return found

    def dispatched(self) -> Mapping[tuple[str, ...], float]:
        """Return how many requests fell to each FlowSchema, by level and schema."""
        return {found.names: found.dispatched for found in self._classes.values()}

    def nominal_seats(self) -> Mapping[tuple[str, ...], float]:
        """Return how many seats each priority level's shares stand for."""
        seats = nominal_seats(self._levels, self._seats)
        return {(name,): count for name, count in seats.items()}

    def _classified(self, info: RequestInfo, user: User) -> FlowClass | None:
        schema = matching(
            self._order,
            Asked(
                user.name,
                user.groups,
                info.verb,
                info.group,
                info.resource,
                info.subresource,
                info.namespace,
                info.path,
            ),
        )
        return None if schema is None else self._classes[schema["metadata"]["name"]]

    # What changes.

    def _observe(self, change: Change) -> None:
        key, event = ObjectKey.parse(change.event.key), change.event
        known = self._schemas if key.resource == SCHEMAS else self._levels
        if event.value is None:
            known.pop(key.name, None)
        else:
            known[key.name] = decode(event.value, event.revision)
        self._settle()

    def _forget(self) -> None:
        self._schemas.clear()
        self._levels.clear()
        self._settle()

    def _settle(self) -> None:
        """Work out the order anew; counts stay with the schemas that stay."""
        before = self._classes
        self._order = in_order(self._schemas.values(), self._levels)
        self._by_namespace = names_namespaces(self._order)
        self._classes = {}
        self.priority_levels.settle(self._levels)
        for schema in self._order:
            level = level_name(schema)
            found = FlowClass(schema, self._levels[level], self.priority_levels.lane(level))
            name = found.names[1]
            if name in before:
                found.dispatched = before[name].dispatched
            self._classes[name] = found
        self._cache.clear()
        self._changed.set()

    async def keep(
        self, store: Store, clock: Clock, ensure: Callable[[list[Object]], Awaitable[None]]
    ) -> None:
        """Write conditions, and bring back what must be there, for ever."""
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            missing = [obj for obj in flow_control_objects() if not self._has(obj)]
            if missing:
                await ensure(missing)
            for schema in list(self._schemas.values()):
                await self._say_dangling(store, schema, rfc3339(clock.now()))

    def _has(self, obj: Object) -> bool:
        known = self._schemas if obj["kind"] == "FlowSchema" else self._levels
        return obj["metadata"]["name"] in known

    async def _say_dangling(self, store: Store, schema: Object, now: str) -> None:
        before = (schema.get("status") or {}).get("conditions") or ()
        wanted = set_conditions(before, [dangling(schema, self._levels)], now)
        if wanted == list(before):
            return
        metadata = schema["metadata"]
        key = ObjectKey(GROUP, SCHEMAS, PLAIN, "", metadata["name"]).path()
        value = encode({**schema, "status": {**(schema.get("status") or {}), "conditions": wanted}})
        try:
            await store.commit([Write(key, value, expected=int(metadata["resourceVersion"]))])
        except Conflict:
            # Whoever wrote it brings us back here.
            return
