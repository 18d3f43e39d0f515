"""Discovery and OpenAPI as answers: derived from a cluster's types, cached, with ETags."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersion
from skerry.logic import discovery, openapi
from skerry.logic.builtin import openapi_definitions
from skerry.server.catalogue import TypeSet
from skerry.server.codec import dump
from skerry.server.http.message import Answer, Request, Response


@dataclass(slots=True)
class _Documents:
    """What has been made for one set of types."""

    made: dict[str, tuple[bytes, str]] = field(default_factory=dict)


class Documents:
    """Answers discovery and OpenAPI paths. Clusters that share a TypeSet share its documents."""

    def __init__(self) -> None:
        self._by_types: weakref.WeakKeyDictionary[TypeSet, _Documents] = weakref.WeakKeyDictionary()

    def answer(self, path: str, types: TypeSet, request: Request) -> Answer | None:
        """Answer *path*, or None when it is not one of ours."""
        path = path.rstrip("/")
        if path in ("/api", "/apis"):
            return self._root(path, types, request)
        if path == "/api/v1":
            return self._resource_list("", "v1", types, request)
        if path.startswith("/apis/"):
            return self._group(path[len("/apis/") :].split("/"), types, request)
        if path == "/openapi/v2":
            return self._cached(
                types,
                path,
                request,
                lambda: openapi.swagger_document(types.resources, openapi_definitions()),
            )
        if path == "/openapi/v3":
            return self._cached(types, path, request, lambda: dump(self._index(types)))
        if path.startswith("/openapi/v3/"):
            return self._openapi(path[len("/openapi/v3/") :], types, request)
        return None

    def _root(self, path: str, types: TypeSet, request: Request) -> Answer:
        core = path == "/api"
        aggregate = discovery.aggregated_core if core else discovery.aggregated_groups
        version = _aggregated_version(request.headers.get("accept", ""))
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
                raise NotFound.path()
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

    def _index(self, types: TypeSet) -> dict[str, object]:
        hashes = {}
        for group, version in types.by_group_version:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            _, digest = self._openapi_document(path, group, version, types)
            hashes[path] = digest
        return openapi.index(hashes)

    def _openapi(self, path: str, types: TypeSet, request: Request) -> Answer:
        parts = path.split("/")
        if parts[0] == "api" and len(parts) == 2:
            group, version = "", parts[1]
        elif parts[0] == "apis" and len(parts) == 3:
            group, version = parts[1], parts[2]
        else:
            raise NotFound.path()
        if GroupVersion(group, version) not in types.by_group_version:
            raise NotFound.path()
        body, digest = self._openapi_document(path, group, version, types)
        return _with_etag(request, body, digest)

    def _openapi_document(
        self, path: str, group: str, version: str, types: TypeSet
    ) -> tuple[bytes, str]:
        resources = next(r for gv, r in types.by_group_version.items() if gv == (group, version))
        return self._made(
            types,
            f"/openapi/v3/{path}",
            lambda: openapi.group_version_document(
                group, version, resources, openapi_definitions()
            ),
        )

    def _cached(
        self,
        types: TypeSet,
        name: str,
        request: Request,
        make: Callable[[], bytes],
    ) -> Response:
        body, digest = self._made(types, name, make)
        return _with_etag(request, body, digest)

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


def _aggregated_version(accept: str) -> str:
    """Return the version of aggregated discovery the client asks for first, if any."""
    for clause in accept.split(","):
        if "as=APIGroupDiscoveryList" not in clause:
            if clause.strip().startswith("application/json"):
                return ""
            continue
        for version in discovery.AGGREGATED_VERSIONS:
            if f"v={version};" in clause + ";":
                return version
    return ""
