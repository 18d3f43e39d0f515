"""A deliberately simple API server: one dict, one log, no cleverness.

It knows what the runtime and the core controllers rely on — optimistic concurrency, uids,
finalizers, deletion with preconditions and propagation, paged lists, watches with bookmarks, 410,
streaming lists, discovery, logical clusters — and nothing else. Being obvious, it is what the
real engine can be compared with; being a ``Transport``, it needs no server at all.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import orjson

from skerry.api import errors
from skerry.api.kinds import ALL_VERBS, GroupVersionKind, ResourceInfo, Subresource
from skerry.api.objects import Object
from skerry.kit.clock import Clock, LoopClock
from skerry.kit.ids import IdSource, SeededIds
from skerry.kit.timestamps import rfc3339
from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, TransportError


def served(
    group: str, version: str, resource: str, kind: str, *, namespaced: bool = True
) -> ResourceInfo:
    status = Subresource("status", GroupVersionKind(group, version, kind), ("get", "update"))
    return ResourceInfo(
        group, version, resource, kind, namespaced, verbs=ALL_VERBS, subresources=(status,)
    )


TYPES = (
    served("", "v1", "namespaces", "Namespace", namespaced=False),
    served("", "v1", "configmaps", "ConfigMap"),
    served("", "v1", "secrets", "Secret"),
    served("", "v1", "serviceaccounts", "ServiceAccount"),
    served("", "v1", "pods", "Pod"),
    served("", "v1", "services", "Service"),
    served("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    served("", "v1", "replicationcontrollers", "ReplicationController"),
    served("", "v1", "resourcequotas", "ResourceQuota"),
    served("", "v1", "nodes", "Node", namespaced=False),
    served("", "v1", "events", "Event"),
    served("apps", "v1", "deployments", "Deployment"),
    served("apps", "v1", "replicasets", "ReplicaSet"),
    served("coordination.k8s.io", "v1", "leases", "Lease"),
    served(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
    ),
)


class Place(NamedTuple):
    group: str
    resource: str
    cluster: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Change:
    revision: int
    place: Place
    type: str
    object: Object
    previous: Object | None


@dataclass
class Asked:
    """One request, taken apart."""

    method: str
    info: ResourceInfo
    place: Place
    subresource: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass
class Twin:
    """The server. ``objects`` is its whole truth; ``log`` everything that ever happened."""

    clock: Clock = field(default_factory=LoopClock)
    ids: IdSource = field(default_factory=lambda: SeededIds(0))
    types: list[ResourceInfo] = field(default_factory=lambda: list(TYPES))
    minor: str = "32"
    revision: int = 1
    compacted: int = 0
    stale_groups: set[str] = field(default_factory=set)
    objects: dict[Place, Object] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    # What tests do to it directly.

    def compact(self) -> None:
        """Forget all history; watches from before get 410."""
        self.compacted = self.revision

    def find(self, resource: str, namespace: str = "", cluster: str = "") -> dict[str, Object]:
        """Return objects of a type by name."""
        return {
            place.name: obj
            for place, obj in self.objects.items()
            if (place.resource, place.namespace, place.cluster) == (resource, namespace, cluster)
        }

    # The transport.

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.requests.append((method, path, query))
        try:
            content = self._plain(path, headers) or self._answer(method, path, query, headers, body)
            code = 201 if method == "POST" else 200
        except errors.ApiError as error:
            code, content = error.code, error.status()
        return Answer(code, {}, orjson.dumps(content))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        self.requests.append((method, path, query))
        asked = self._asked(method, path, query, headers, b"")
        try:
            after = self._watch_start(asked)
        except errors.ApiError as error:
            yield TwinStream(error.code, _once(orjson.dumps(error.status())))
            return
        yield TwinStream(200, self._watch(asked, after))

    async def close(self) -> None:
        """Nothing is held."""

    # Requests.

    def _plain(self, path: str, headers: Mapping[str, str]) -> Object | None:
        if path == "/version":
            return {"major": "1", "minor": self.minor, "gitVersion": f"v1.{self.minor}.0"}
        tail = path.split("/clusters/", 1)[-1].partition("/")[2] if "/clusters/" in path else path
        core = tail.strip("/") == "api"
        if not core and tail.strip("/") != "apis":
            return None
        groups = [""] if core else sorted({info.group for info in self.types if info.group})
        return {
            "kind": "APIGroupDiscoveryList",
            "items": [self._group(group) for group in groups],
        }

    def _group(self, group: str) -> Object:
        resources = [
            {
                "resource": info.resource,
                "responseKind": {"kind": info.kind},
                "scope": "Namespaced" if info.namespaced else "Cluster",
                "verbs": list(info.verbs),
            }
            for info in self.types
            if info.group == group
        ]
        version: Object = {"version": "v1", "resources": resources}
        if group in self.stale_groups:
            version = {"version": "v1", "freshness": "Stale"}
        return {"metadata": {"name": group}, "versions": [version]}

    def _asked(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> Asked:
        cluster = ""
        if "/clusters/" in path:
            cluster, _, path = path.split("/clusters/", 1)[1].partition("/")
        parts = path.strip("/").split("/")
        group = "" if parts.pop(0) == "api" else parts.pop(0)
        parts.pop(0)
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in ("status", "finalize"):
            namespace = parts[1]
            parts = parts[2:]
        resource, name, subresource = (*parts, "", "")[:3]
        info = next(
            (info for info in self.types if (info.group, info.resource) == (group, resource)), None
        )
        if info is None:
            raise errors.NotFound.path()
        place = Place(group, resource, cluster, namespace, name)
        values = {name: value[0] for name, value in parse_qs(query).items()}
        decoded = orjson.loads(body) if body else None
        return Asked(method, info, place, subresource, values, headers, decoded)

    def _answer(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> Object:
        asked = self._asked(method, path, query, headers, body)
        if method == "POST":
            return self._create(asked)
        if not asked.place.name:
            return self._delete_all(asked) if method == "DELETE" else self._list(asked)
        if asked.place not in self.objects:
            raise errors.NotFound.of(asked.place.group, asked.place.resource, asked.place.name)
        if method == "GET":
            return self._seen(asked, self.objects[asked.place])
        if method == "DELETE":
            return self._delete(asked.place, asked.body or {})
        if method == "PUT":
            return self._replace(asked, asked.body)
        return self._replace(asked, self._patched(asked))

    def _seen(self, asked: Asked, obj: Object) -> Object:
        if "PartialObjectMetadata" not in asked.headers.get("accept", ""):
            return obj
        kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        return {**kind, "metadata": obj["metadata"]}

    def _selected(self, asked: Asked, place: Place, obj: Object) -> bool:
        where = asked.place
        wanted = dict(
            item.split("=", 1) for item in asked.query.get("labelSelector", "").split(",") if item
        )
        labels = obj["metadata"].get("labels") or {}
        return (
            (place.group, place.resource) == (where.group, where.resource)
            and where.cluster in ("*", place.cluster)
            and where.namespace in ("", place.namespace)
            and all(labels.get(name) == value for name, value in wanted.items())
        )

    def _list(self, asked: Asked) -> Object:
        limit, start, revision = int(asked.query.get("limit", 0)), 0, self.revision
        if token := asked.query.get("continue"):
            start, revision = (int(part) for part in token.split(":"))
            if revision < self.compacted:
                raise errors.Gone("The provided continue parameter is too old")
        found = [
            self._seen(asked, obj)
            for place, obj in sorted(self._at(revision).items())
            if self._selected(asked, place, obj)
        ]
        page = found[start : start + limit] if limit else found[start:]
        metadata = {"resourceVersion": str(revision)}
        if start + len(page) < len(found):
            metadata["continue"] = f"{start + len(page)}:{revision}"
        return {"kind": f"{asked.info.kind}List", "metadata": metadata, "items": page}

    def _at(self, revision: int) -> dict[Place, Object]:
        state = dict(self.objects)
        for change in reversed(self.log):
            if change.revision <= revision:
                break
            if change.previous is None:
                state.pop(change.place, None)
            else:
                state[change.place] = change.previous
        return state

    def _create(self, asked: Asked) -> Object:
        obj = copy.deepcopy(asked.body)
        metadata = obj["metadata"]
        if "name" not in metadata:
            metadata["name"] = metadata["generateName"] + self.ids.suffix()
        place = asked.place._replace(name=metadata["name"])
        self._check_namespace(place)
        if place in self.objects:
            raise errors.AlreadyExists.of(place.group, place.resource, place.name)
        if asked.query.get("dryRun"):
            return obj  # type: ignore[no-any-return]
        obj["apiVersion"], obj["kind"] = asked.info.api_version, asked.info.kind
        metadata |= {"uid": self.ids.uid(), "creationTimestamp": rfc3339(self.clock.now())}
        if place.namespace:
            metadata["namespace"] = place.namespace
        if place.cluster:
            metadata.setdefault("annotations", {})["kcp.io/cluster"] = place.cluster
        if place.resource == "namespaces":
            obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
            obj.setdefault("status", {})["phase"] = "Active"
        return self._write(place, "ADDED", obj)

    def _check_namespace(self, place: Place) -> None:
        if not place.namespace:
            return
        home = self.objects.get(Place("", "namespaces", place.cluster, "", place.namespace))
        if home is None:
            raise errors.NotFound.of("", "namespaces", place.namespace)
        if home["metadata"].get("deletionTimestamp"):
            raise errors.Forbidden.of(
                place.group, place.resource, place.name, "the namespace is being terminated"
            )

    def _patched(self, asked: Asked) -> Object:
        old = self.objects[asked.place]
        kind = asked.headers["content-type"]
        if "json-patch" in kind:
            raise errors.UnsupportedMediaType("the twin does not know JSON patch")
        new: Object = _merged(old, asked.body)
        if kind.startswith("application/merge-patch") and "metadata" in asked.body:
            stated = asked.body["metadata"].get("uid")
            if stated not in (None, old["metadata"]["uid"]):
                raise errors.Conflict.of(
                    asked.place.group, asked.place.resource, asked.place.name, "Precondition failed"
                )
        return new

    def _replace(self, asked: Asked, new: Object) -> Object:
        place, old = asked.place, self.objects[asked.place]
        new = copy.deepcopy(new)
        stated = new["metadata"].get("resourceVersion")
        if stated not in (None, "", old["metadata"]["resourceVersion"]):
            raise errors.Conflict.stale(place.group, place.resource, place.name)
        for name in ("uid", "creationTimestamp", "deletionTimestamp"):
            if name in old["metadata"]:
                new["metadata"][name] = old["metadata"][name]
        if asked.subresource == "status":
            new = {**old, "status": new.get("status", {})}
        elif asked.subresource == "finalize":
            new = {**old, "spec": new.get("spec", {})}
        elif "status" in old:
            new["status"] = old["status"]
        if asked.query.get("dryRun"):
            return new
        new["metadata"] = {**new["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}
        if new == old:
            return old
        if self._finished(new):
            return self._write(place, "DELETED", new)
        return self._write(place, "MODIFIED", new)

    def _finished(self, obj: Object) -> bool:
        metadata = obj["metadata"]
        return bool(
            metadata.get("deletionTimestamp")
            and not metadata.get("finalizers")
            and not (obj["kind"] == "Namespace" and obj["spec"].get("finalizers"))
        )

    def _delete(self, place: Place, options: Object) -> Object:
        obj = copy.deepcopy(self.objects[place])
        metadata = obj["metadata"]
        wanted = options.get("preconditions") or {}
        for name in ("uid", "resourceVersion"):
            if name in wanted and wanted[name] != metadata[name]:
                raise errors.Conflict.of(
                    place.group, place.resource, place.name, "Precondition failed"
                )
        if options.get("dryRun"):
            return obj
        finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(
            options.get("propagationPolicy", "")
        )
        held = list(metadata.get("finalizers") or ())
        if finalizer and finalizer not in held:
            held.append(finalizer)
        if held:
            metadata["finalizers"] = held
        metadata.setdefault("deletionTimestamp", rfc3339(self.clock.now()))
        if obj["kind"] == "Namespace":
            obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        if self._finished(obj):
            return self._write(place, "DELETED", obj)
        if obj == self.objects[place]:
            return obj
        return self._write(place, "MODIFIED", obj)

    def _delete_all(self, asked: Asked) -> Object:
        for place, obj in list(self.objects.items()):
            if self._selected(asked, place, obj):
                self._delete(place, asked.body or {})
        return {"kind": "Status", "status": "Success"}

    def _write(self, place: Place, kind: str, obj: Object) -> Object:
        self.revision += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.revision)}
        obj = {**obj, "metadata": metadata}
        previous = self.objects.get(place)
        if kind == "DELETED":
            del self.objects[place]
        else:
            self.objects[place] = obj
        self.log.append(Change(self.revision, place, kind, obj, previous))
        self._news.set()
        return obj

    # Watches.

    def _watch_start(self, asked: Asked) -> int:
        after = int(asked.query.get("resourceVersion") or self.revision)
        if after < self.compacted:
            raise errors.Gone(f"too old resource version: {after} ({self.compacted})")
        return after

    async def _watch(self, asked: Asked, after: int) -> AsyncIterator[bytes]:
        if asked.query.get("sendInitialEvents"):
            after = self.revision
            for place, obj in sorted(self.objects.items()):
                if self._selected(asked, place, obj):
                    yield _event("ADDED", self._seen(asked, obj))
            yield _event("BOOKMARK", _bookmark(after, end=True))
        ends = self.clock.monotonic() + float(asked.query.get("timeoutSeconds") or 3600)
        while True:
            for change in self.log[_position(self.log, after) :]:
                after = change.revision
                if self._selected(asked, change.place, change.object):
                    yield _event(change.type, self._seen(asked, change.object))
            self._news.clear()
            if self.clock.monotonic() >= ends:
                return
            try:
                async with asyncio.timeout(min(60.0, ends - self.clock.monotonic())):
                    await self._wait_for_news(after)
            except TimeoutError:
                yield _event("BOOKMARK", _bookmark(after))

    async def _wait_for_news(self, after: int) -> None:
        while self.revision <= after:
            self._news.clear()
            await self._news.wait()


class TwinStream:
    def __init__(self, status: int, chunks: AsyncIterator[bytes]) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks


class Closed:
    """A transport to nowhere."""

    async def request(self, *_: object, **__: object) -> Answer:
        raise TransportError("nobody listens")


async def _once(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk


def _position(log: list[Change], after: int) -> int:
    """Return where the changes after a revision begin; revisions are dense from the log's first."""
    return max(0, after - log[0].revision + 1) if log else 0


def _event(kind: str, obj: Object) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def _bookmark(revision: int, *, end: bool = False) -> Object:
    metadata: Object = {"resourceVersion": str(revision)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"metadata": metadata}


def _merged(old: Any, patch: Any) -> Any:
    """JSON merge patch, as RFC 7386 defines it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result
