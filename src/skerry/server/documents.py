"""Discovery and OpenAPI as answers: derived from a cluster's types, cached, with ETags."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime

from skerry.api.errors import NotAcceptable, NotFound, PageNotFound
from skerry.api.kinds import GroupVersion
from skerry.logic.machinery import discovery, openapi
from skerry.logic.machinery.resource import Resource
from skerry.server.catalogue import TypeSet
from skerry.server.codec import dump
from skerry.server.http.message import Answer, Headers, Request, Response
from skerry.server.offload.offload import Offload
from skerry.server.openapi_documents import Form
from skerry.server.user import User

_YEAR = timedelta(days=365)


@dataclass(slots=True)
class _Documents:
    """What has been made for one set of types."""

    made: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    fingerprints: dict[GroupVersion, str] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)


# What ``Offload.document`` makes a document of.
Wanted = tuple[Form, str, str, Sequence[Resource]]


class Documents:
    """Answers discovery and OpenAPI paths. Clusters that share a TypeSet share its documents."""

    def __init__(self, now: Callable[[], datetime], offload: Offload | None = None) -> None:
        self._now = now
        self._offload = offload or Offload()
        self._by_types: weakref.WeakKeyDictionary[TypeSet, _Documents] = weakref.WeakKeyDictionary()

    async def answer(
        self, path: str, types: TypeSet, request: Request, user: User
    ) -> Answer | None:
        """Answer *path*, or None when it is not one of ours."""
        path = path.rstrip("/")
        if path in ("/api", "/apis"):
            return self._root(path, types, request)
        if path == "/api/v1":
            return self._resource_list("", "v1", types, request)
        if path.startswith("/apis/"):
            return self._group(path[len("/apis/") :].split("/"), types, request)
        if path == "/openapi/v2":
            return await self._swagger(types, request, user)
        if path == "/openapi/v3":
            return await self._index(types, request)
        if path.startswith("/openapi/v3/"):
            return await self._openapi(path[len("/openapi/v3/") :], types, request, user)
        return None

    async def _swagger(self, types: TypeSet, request: Request, user: User) -> Answer:
        protobuf = _wants_protobuf(request.headers.get("accept", ""))
        form: Form = "swagger-protobuf" if protobuf else "swagger"
        body, digest = await self._document(
            types, f"/openapi/v2#{form}", (form, "", "", types.resources), user
        )
        answer = _with_etag(request, body, digest)
        if protobuf:
            # However it was asked for: one of the names is no valid media type, and Go's parser
            # refuses it.
            answer.content_type = openapi.SWAGGER_PROTOBUF_TYPES[0]
        return answer

    def _root(self, path: str, types: TypeSet, request: Request) -> Answer:
        core = path == "/api"
        aggregate = discovery.aggregated_core if core else discovery.aggregated_groups
        version = discovery.asked_version(request.headers.get("accept", ""))
        if version:
            answer = self._cached(
                types,
                f"{path}#{version}",
                request,
                lambda: dump(aggregate(types.resources, version)),
            )
            # Also on 304: caches take over the headers of that answer.
            answer.content_type = discovery.aggregated_media_type(version)
            return answer
        if core:
            address = request.headers.get("host", "")
            return Response(body=dump(discovery.api_versions(address)))
        return self._cached(
            types, path, request, lambda: dump(discovery.api_group_list(types.resources))
        )

    def _group(self, parts: list[str], types: TypeSet, request: Request) -> Answer | None:
        if len(parts) == 1:
            group = discovery.api_group(parts[0], types.resources)
            if group is None:
                raise PageNotFound.path()
            return Response(body=dump(group))
        if len(parts) == 2:
            return self._resource_list(parts[0], parts[1], types, request)
        return None

    def _resource_list(self, group: str, version: str, types: TypeSet, request: Request) -> Answer:
        served = GroupVersion(group, version)
        if served not in types.by_group_version:
            raise NotFound.path()
        return self._cached(
            types,
            f"/apis/{group}/{version}",
            request,
            lambda: dump(discovery.api_resource_list(served, types.resources) or {}),
        )

    async def _index(self, types: TypeSet, request: Request) -> Answer:
        # A cluster's documents are reached below the path the index was asked at.
        prefix = request.path.removesuffix("/").removesuffix("/openapi/v3")
        hashes = {}
        for each in types.by_group_version:
            hashes[openapi.document_path(each)] = self._fingerprint(types, each)
            if any(resource.custom for resource in types.by_group_version[each]):
                # Its schemas may be large, and there may be many such groups.
                await asyncio.sleep(0)
        return Response(body=dump(openapi.index(hashes, prefix)))

    async def _openapi(self, path: str, types: TypeSet, request: Request, user: User) -> Answer:
        parts = path.split("/")
        if parts[0] == "api" and len(parts) == 2:
            asked = GroupVersion("", parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            asked = GroupVersion(parts[1], parts[2])
        else:
            raise NotFound.path()
        resources = types.by_group_version.get(asked)
        if resources is None:
            raise NotFound.path()
        digest = self._fingerprint(types, asked)
        wanted = request.query.get("hash")
        if wanted and wanted != digest:
            location = f"{request.path}?hash={digest}"
            return Response(status=301, headers=(("Location", location),))
        wanted_form: Wanted = ("v3", asked.group, asked.version, resources)
        body, _ = await self._document(types, f"/openapi/v3/{path}", wanted_form, user)
        answer = _with_etag(request, body, digest)
        if wanted:
            # The address names the content, so whoever has it never needs to ask again.
            answer.headers = (*answer.headers, *self._for_ever())
        return answer

    def _fingerprint(self, types: TypeSet, of: GroupVersion) -> str:
        known = self._by_types.setdefault(types, _Documents()).fingerprints
        if of not in known:
            known[of] = openapi.fingerprint(of.group, of.version, types.by_group_version[of])
        return known[of]

    def _for_ever(self) -> Headers:
        expires = format_datetime(self._now() + _YEAR, usegmt=True)
        return (("Cache-Control", "public, immutable"), ("Expires", expires))

    def _cached(
        self,
        types: TypeSet,
        name: str,
        request: Request,
        make: Callable[[], bytes],
    ) -> Response:
        body, digest = self._made(types, name, make)
        return _with_etag(request, body, digest)

    async def _document(
        self, types: TypeSet, name: str, wanted: Wanted, user: User
    ) -> tuple[bytes, str]:
        """Return a document and its hash; who asks while it is being made waits for the same."""
        documents = self._by_types.setdefault(types, _Documents())
        known = documents.made.get(name)
        if known is not None:
            return known
        lock = documents.locks.setdefault(name, asyncio.Lock())
        async with lock:
            known = documents.made.get(name)
            if known is None:
                body = await self._offload.document(*wanted, user)
                known = documents.made[name] = (body, discovery.content_hash(body))
                documents.locks.pop(name, None)
        return known

    def _made(self, types: TypeSet, name: str, make: Callable[[], bytes]) -> tuple[bytes, str]:
        documents = self._by_types.setdefault(types, _Documents())
        known = documents.made.get(name)
        if known is None:
            body = make()
            digest = discovery.content_hash(body)
            known = documents.made[name] = (bytes(memoryview(body)), digest)
        return known


def _with_etag(request: Request, body: bytes, digest: str) -> Response:
    etag = f'"{digest}"'
    if request.headers.get("if-none-match") == etag:
        return Response(status=304, headers=(("ETag", etag), ("Vary", "Accept")))
    return Response(body=body, headers=(("ETag", etag), ("Vary", "Accept")))


def _wants_protobuf(accept: str) -> bool:
    """Whether the first clause we can serve asks for protobuf; raises when there is none."""
    if not accept:
        return False
    for clause in accept.split(","):
        media = clause.split(";", 1)[0].strip()
        if media in openapi.SWAGGER_PROTOBUF_TYPES:
            return True
        if media in ("application/json", "application/*", "*/*"):
            return False
    raise NotAcceptable(
        "only the following media types are accepted: application/json, "
        + openapi.SWAGGER_PROTOBUF_TYPES[0]
    )
