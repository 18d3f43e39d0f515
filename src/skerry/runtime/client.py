"""A client for any Kubernetes API: verbs on resource types, over any transport.

A ``Client`` speaks to one *base*: a plain server, one logical cluster (``/clusters/x``), all of
them (``/clusters/*``) or a view (``/services/apiexport/…/clusters/*``). ``for_cluster`` gives the
same client for another cluster; all of them share the transport and what was learnt of the
server. Objects are plain dicts. Failures are the ``api.errors`` classes, as the server named
them; ``TransportError`` when there was no answer.

A server that says 429, or 5xx with ``Retry-After``, asks to be left alone for a while: the
client waits and sends the request again, a bounded number of times. It repeats nothing else.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlencode

import orjson

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.log import Logger
from skerry.runtime.answers import (
    WatchEvent,
    answer_failure,
    asked_delay,
    decoded,
    name_items,
    watch_events,
)
from skerry.runtime.facts import ServerFacts
from skerry.runtime.transport import Answer, Transport, lines, whole

# As many as client-go: a server that stays overloaded for ten answers is somebody's concern.
_PATIENCE = 10
# client-go's pages; a page of 1.5 KB objects decodes in a few milliseconds.
PAGE_SIZE = 500

EVERYWHERE = "*"

PatchKind = Literal["json", "merge", "strategic", "apply"]
Propagation = Literal["", "Background", "Foreground", "Orphan"]

_PATCH_TYPES: Mapping[str, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_JSON = "application/json"
_METADATA_ITEM = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{_JSON}"
_METADATA_LIST = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{_JSON}"

# Asks for no body in the answer to a write (RFC 7240).
QUIET: Mapping[str, str] = {"prefer": "return=minimal"}

_log = Logger("client")


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Items, and the revision they were read at. ``next`` continues an unfinished list."""

    items: list[Object]
    resource_version: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a type a list or watch is about. Empty fields select everything."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    # What is read of each object beside its metadata, as ``member.member``; empty: all of it. A
    # source that can tell less may leave out the rest.
    parts: tuple[str, ...] = ()

    def parameters(self) -> dict[str, str]:
        found = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in found.items() if value}


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is to be carried out and in whose name."""

    field_manager: str = ""
    dry_run: bool = False
    field_validation: Literal["", "Ignore", "Warn", "Strict"] = ""
    # Whether the answer need only tell metadata: a large object costs as much to read as to send.
    metadata_only: bool = False

    @property
    def accept(self) -> str:
        """What is wanted in return."""
        return _METADATA_ITEM if self.metadata_only else _JSON

    def parameters(self) -> dict[str, str]:
        found = {
            "fieldManager": self.field_manager,
            "dryRun": "All" if self.dry_run else "",
            "fieldValidation": self.field_validation,
        }
        return {name: value for name, value in found.items() if value}


PLAIN_WRITE = WriteOptions()


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a delete insists on (``uid``, ``resource_version``) and what becomes of dependents."""

    uid: str = ""
    resource_version: str = ""
    propagation: Propagation = ""
    grace_seconds: int | None = None
    dry_run: bool = False

    def body(self) -> Object:
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        pairs = {"uid": self.uid, "resourceVersion": self.resource_version}
        if preconditions := {name: value for name, value in pairs.items() if value}:
            body["preconditions"] = preconditions
        if self.propagation:
            body["propagationPolicy"] = self.propagation
        if self.grace_seconds is not None:
            body["gracePeriodSeconds"] = self.grace_seconds
        if self.dry_run:
            body["dryRun"] = ["All"]
        return body


PLAIN_DELETE = DeleteOptions()


@dataclass(frozen=True)
class Client:
    """Verbs on resource types at one base."""

    transport: Transport
    root: str = ""
    cluster: str = ""
    user_agent: str = "skerry/client"
    clock: Clock = field(default_factory=SystemClock)
    facts: ServerFacts = field(default_factory=ServerFacts, repr=False)

    @property
    def base(self) -> str:
        """The path below which this client's resources lie."""
        return f"{self.root}/clusters/{self.cluster}" if self.cluster else self.root

    def for_cluster(self, cluster: str) -> Client:
        """Return this client for one logical cluster, or for ``EVERYWHERE``.

        The empty name, which objects of a plain server have, gives this client itself.
        """
        if not cluster or cluster == self.cluster:
            return self
        return Client(self.transport, self.root, cluster, self.user_agent, self.clock, self.facts)

    def at(self, root: str, cluster: str = "") -> Client:
        """Return this client for another root, such as a view's path."""
        return Client(
            self.transport, root.rstrip("/"), cluster, self.user_agent, self.clock, self.facts
        )

    # Reading.

    async def get(
        self,
        gvr: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        metadata_only: bool = False,
        resource_version: str = "",
    ) -> Object:
        """Return one object as it is now (or not older than *resource_version*)."""
        path = self.path(gvr, namespace, name, subresource)
        query = {"resourceVersion": resource_version} if resource_version else {}
        accept = _METADATA_ITEM if metadata_only else _JSON
        return await self.call("GET", path, query, accept=accept)

    async def list_page(
        self,
        gvr: GroupVersionResource,
        selection: Selection = EVERYTHING,
        *,
        limit: int = PAGE_SIZE,
        continuation: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> ObjectList:
        """Return one page; *continuation* is the ``next`` of the page before."""
        query = selection.parameters()
        if limit:
            query["limit"] = str(limit)
        if continuation:
            query["continue"] = continuation
        elif resource_version:
            query["resourceVersion"] = resource_version
            if resource_version_match:
                query["resourceVersionMatch"] = resource_version_match
        accept = _METADATA_LIST if selection.metadata_only else _JSON
        path = self.path(gvr, selection.namespace)
        page = await self.call("GET", path, query, accept=accept)
        metadata = page.get("metadata") or {}
        items = page.get("items") or []
        name_items(items, page)
        return ObjectList(
            items, str(metadata.get("resourceVersion", "")), str(metadata.get("continue", ""))
        )

    async def list(
        self,
        gvr: GroupVersionResource,
        selection: Selection = EVERYTHING,
        *,
        page_size: int = PAGE_SIZE,
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> ObjectList:
        """Return every selected object, read page by page at one revision.

        Raises ``Gone`` when the server forgot that revision between pages.
        """
        items: builtins.list[Object] = []
        async for page in self.pages(
            gvr,
            selection,
            page_size,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
        ):
            items.extend(page.items)
        return ObjectList(items, page.resource_version)

    async def pages(
        self,
        gvr: GroupVersionResource,
        selection: Selection = EVERYTHING,
        page_size: int = PAGE_SIZE,
        *,
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> AsyncIterator[ObjectList]:
        """Yield a list page by page, at one revision; at least one page comes."""
        page = await self.list_page(
            gvr,
            selection,
            limit=page_size,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
        )
        yield page
        while page.next:
            page = await self.list_page(gvr, selection, limit=page_size, continuation=page.next)
            yield page

    @asynccontextmanager
    async def watch(
        self,
        gvr: GroupVersionResource,
        selection: Selection = EVERYTHING,
        *,
        resource_version: str = "",
        timeout_seconds: int = 0,
        initial_events: bool = False,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Open a watch; inside, iterate over its events. An ERROR event is raised.

        With *initial_events* the state comes first, as ADDED events, closed by a BOOKMARK
        annotated ``k8s.io/initial-events-end``.
        """
        query = {**selection.parameters(), "watch": "true", "allowWatchBookmarks": "true"}
        if resource_version:
            query["resourceVersion"] = resource_version
        if timeout_seconds:
            query["timeoutSeconds"] = str(timeout_seconds)
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        headers = {
            "accept": _METADATA_ITEM if selection.metadata_only else _JSON,
            "user-agent": self.user_agent,
        }
        path = self.path(gvr, selection.namespace)
        async with self.transport.stream("GET", path, urlencode(query), headers) as answer:
            if answer.status != 200:
                raise answer_failure(Answer(answer.status, answer.headers, await whole(answer)))
            self.facts.heard()
            yield watch_events(lines(aiter(answer)))

    # Writing.

    async def create(
        self,
        gvr: GroupVersionResource,
        obj: Object,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        quiet: bool = False,
        options: WriteOptions = PLAIN_WRITE,
    ) -> Object:
        """Create *obj*, or a *subresource* of the object called *name* (a binding, a token)."""
        where = namespace or _namespace(obj)
        path = self.path(gvr, where, name, subresource)
        query, accept = options.parameters(), options.accept
        return await self.call("POST", path, query, obj, accept=accept, quiet=quiet)

    async def update(
        self,
        gvr: GroupVersionResource,
        obj: Object,
        *,
        subresource: str = "",
        options: WriteOptions = PLAIN_WRITE,
    ) -> Object:
        """Replace an object; ``Conflict`` when its resourceVersion is not the newest."""
        path = self.path(gvr, _namespace(obj), obj["metadata"]["name"], subresource)
        return await self.call("PUT", path, options.parameters(), obj, accept=options.accept)

    async def update_status(
        self, gvr: GroupVersionResource, obj: Object, *, options: WriteOptions = PLAIN_WRITE
    ) -> Object:
        return await self.update(gvr, obj, subresource="status", options=options)

    async def patch(
        self,
        gvr: GroupVersionResource,
        name: str,
        patch: object,
        namespace: str = "",
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
        force: bool = False,
        quiet: bool = False,
        options: WriteOptions = PLAIN_WRITE,
    ) -> Object:
        """Change part of an object. *force* takes fields over from others and is for apply.

        *quiet* does not need the answer: where the server can, it sends none.
        """
        query = options.parameters()
        if kind == "apply" and force:
            query["force"] = "true"
        path = self.path(gvr, namespace, name, subresource)
        return await self.call(
            "PATCH",
            path,
            query,
            patch,
            accept=options.accept,
            content_type=_PATCH_TYPES[kind],
            quiet=quiet,
        )

    async def delete(
        self,
        gvr: GroupVersionResource,
        name: str,
        namespace: str = "",
        options: DeleteOptions = PLAIN_DELETE,
        *,
        quiet: bool = False,
    ) -> Object:
        """Ask for deletion; returns the object that is going, or a Status once it is gone."""
        path = self.path(gvr, namespace, name)
        return await self.call("DELETE", path, {}, options.body(), quiet=quiet)

    async def delete_collection(
        self,
        gvr: GroupVersionResource,
        selection: Selection = EVERYTHING,
        options: DeleteOptions = PLAIN_DELETE,
    ) -> Object:
        """Ask for deletion of everything selected."""
        path = self.path(gvr, selection.namespace)
        return await self.call("DELETE", path, selection.parameters(), options.body())

    # What the verbs stand on.

    def path(
        self, gvr: GroupVersionResource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> str:
        """Return the path of a collection, an object or a subresource."""
        parts = [self.base, f"/apis/{gvr.group}/" if gvr.group else "/api/", gvr.version]
        if namespace:
            parts.append(f"/namespaces/{_quoted(namespace)}")
        parts.append(f"/{gvr.resource}")
        if name:
            parts.append(f"/{_quoted(name)}")
        if subresource:
            parts.append(f"/{subresource}")
        return "".join(parts)

    async def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object = None,
        *,
        accept: str = _JSON,
        content_type: str = _JSON,
        quiet: bool = False,
    ) -> Object:
        """Send one request to any path of the server; return the decoded answer."""
        headers = {"accept": accept, "user-agent": self.user_agent}
        if quiet:
            headers |= QUIET
        payload = b""
        if body is not None:
            headers["content-type"] = content_type
            payload = orjson.dumps(body)
        text = urlencode(query) if query else ""
        for _ in range(_PATIENCE):
            answer = await self.transport.request(method, path, text, headers, payload)
            if answer.status < 300:
                self.facts.heard()
                return decoded(answer.body)
            delay = asked_delay(answer)
            if delay is None:
                break
            _log.debug("server asked to wait", path=path, seconds=delay, code=answer.status)
            await self.clock.sleep(delay)
        raise answer_failure(answer)

    async def extensions(self, *, again: bool = False) -> Mapping[str, str]:
        """Return the paths of what the server offers beyond Kubernetes, by name.

        Asked once, and *again* by who has reason to believe that it is another server.
        """
        return await self.facts.known_extensions(
            lambda: self.call("GET", f"{self.base}/extensions", {}), again=again
        )

    async def version(self) -> Mapping[str, str]:
        """Return ``/version``, asked once."""
        # Without a workspace kcp tells nobody but system:masters; all at once have no version.
        base = self.root if self.cluster == EVERYWHERE else self.base
        return await self.facts.known_version(lambda: self.call("GET", f"{base}/version", {}))


def cluster_of(obj: Mapping[str, Any]) -> str:
    """Return the logical cluster an object says it is in; empty on a plain server."""
    metadata = obj.get("metadata") or {}
    return str((metadata.get("annotations") or {}).get(CLUSTER_ANNOTATION, ""))


def _namespace(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("namespace", ""))


def _quoted(name: str) -> str:
    return quote(name, safe=":~!$&'()*+,;=@")
