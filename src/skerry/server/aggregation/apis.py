"""What other servers serve, and the answers to requests for that.

An APIService names them. Who asks was authenticated and authorized here before; the other server is
shown who it is, in headers that it believes because of the certificate they come with. What this
server serves itself is never passed on, whatever an APIService says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import orjson

from skerry.api.errors import MethodNotAllowed
from skerry.api.keys import PLAIN
from skerry.api.kinds import GroupVersion
from skerry.logic.machinery import discovery, openapi
from skerry.logic.machinery.aggregation import (
    AggregatedVersion,
    aggregated_version,
    forwarded,
    group_document,
    identity_lines,
    own_part,
    with_discovery,
    with_groups,
    with_swagger,
)
from skerry.logic.machinery.builtin import definitions
from skerry.server.catalogue import TypeSet
from skerry.server.codec import dump
from skerry.server.http.message import Answer, Request, Response
from skerry.server.observed import ObservedObjects
from skerry.server.request.info import RequestInfo
from skerry.server.user import User

TYPE = ("apiregistration.k8s.io", "apiservices")
# What may stand in a path as it is.
_PATH = "/:@!$&'()*+,;=~-._"


class Asked(NamedTuple):
    """A request as another server is sent it; *lines* are headers, some several times."""

    method: str
    path: str
    query: str
    lines: Sequence[tuple[str, str]]
    body: bytes
    is_watch: bool = False
    # The protocol that the client offers to go on in, if any.
    upgrade: str = ""


class Upstream(Protocol):
    """The way to other servers."""

    async def pass_on(self, version: AggregatedVersion, asked: Asked) -> Answer:
        """Return the other server's answer, or that it was not reached."""


class AggregatedApis:
    """Answers what concerns group versions of other servers."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.services = ObservedObjects(*TYPE)
        # What each said last of its resources, whoever asked.
        self.learned: dict[GroupVersion, Mapping[str, Any]] = {}
        # What each says of itself in OpenAPI v2, and our document with that, by form.
        self.described: dict[GroupVersion, Mapping[str, Mapping[str, Any]]] = {}
        self._merged: dict[str, tuple[tuple[object, ...], bytes]] = {}

    def versions(self, types: TypeSet) -> dict[GroupVersion, AggregatedVersion]:
        """Return what others serve, apart from what we serve ourselves."""
        found: dict[GroupVersion, AggregatedVersion] = {}
        for obj in self.services.within(PLAIN).values():
            version = aggregated_version(obj)
            if version is not None and version.group_version not in types.by_group_version:
                found[version.group_version] = version
        return found

    def describe(self, place: GroupVersion, swagger: Mapping[str, Any]) -> None:
        """Take what another server says in OpenAPI v2; nothing, where that cannot be passed on."""
        try:
            part = own_part(swagger, place)
            openapi.swagger_protobuf({"swagger": "2.0", "info": {}, **part})
        except (TypeError, AttributeError, KeyError, ValueError, RecursionError):
            part = {"paths": {}, "definitions": {}}
        self.described[place] = part

    async def answer(
        self, request: Request, info: RequestInfo, user: User, types: TypeSet
    ) -> Answer | None:
        """Answer a request that another server is asked for; None for any other."""
        path = info.path
        if path == "/openapi/v2" and self.described:
            # Ours may be as the client knows it, and theirs not.
            kept = ((name, value) for name, value in request.headers.items())
            request.headers = {name: value for name, value in kept if name != "if-none-match"}
        if not path.startswith(("/apis", "/openapi/v3")):
            return None
        versions = self.versions(types)
        if not versions:
            return None
        parts = path.strip("/").split("/")
        if parts[0] == "openapi":
            return await self._openapi(parts, request, info, user, versions)
        if len(parts) <= 2:
            return self._documents(parts, request, types, versions)
        version = versions.get(GroupVersion(parts[1], parts[2]))
        return None if version is None else await self._passed(request, info, user, version)

    def with_others(self, path: str, answer: Answer, types: TypeSet) -> Answer:
        """Return an OpenAPI document with what available servers add to it."""
        versions = [each for each in self.versions(types).values() if each.is_available]
        if not versions or not isinstance(answer, Response) or not isinstance(answer.body, bytes):
            return answer
        if path == "/openapi/v2":
            return self._with_swagger(answer, types, versions)
        if path == "/openapi/v3":
            return self._with_index(answer, answer.body, versions)
        return answer

    def _with_swagger(
        self, answer: Response, types: TypeSet, versions: Sequence[AggregatedVersion]
    ) -> Response:
        places = [each.group_version for each in versions]
        parts = [self.described[place] for place in places if place in self.described]
        if not parts:
            return answer
        # Merging takes longer than most requests: once for each state of all of them.
        state = (types, *map(id, parts))
        known = self._merged.get(answer.content_type)
        if known is None or known[0] != state:
            ours = openapi.swagger(types.resources, definitions())
            merged = with_swagger(ours, parts)
            protobuf = answer.content_type == openapi.SWAGGER_PROTOBUF_TYPES[0]
            made = openapi.swagger_protobuf(merged) if protobuf else dump(merged)
            known = self._merged[answer.content_type] = (state, made)
        etag = ("ETag", f'"{discovery.content_hash(known[1])}"')
        headers = [each for each in answer.headers if each[0] != "ETag"]
        return Response(answer.status, known[1], answer.content_type, (*headers, etag))

    def _with_index(
        self, answer: Response, body: bytes, versions: Sequence[AggregatedVersion]
    ) -> Response:
        index = orjson.loads(body)
        for each in versions:
            path = f"apis/{each.group_version.group}/{each.group_version.version}"
            index["paths"][path] = {"serverRelativeURL": f"/openapi/v3/{path}"}
        return Response(answer.status, dump(index), answer.content_type, answer.headers)

    def _documents(
        self,
        parts: Sequence[str],
        request: Request,
        types: TypeSet,
        versions: Mapping[GroupVersion, AggregatedVersion],
    ) -> Answer | None:
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed
        if len(parts) == 2:
            if any(each.group == parts[1] for each in types.by_group_version):
                return None
            group = group_document(parts[1], versions.values())
            return None if group is None else Response(body=dump(group))
        wanted = discovery.asked_version(request.headers.get("accept", ""))
        if not wanted:
            listed = discovery.api_group_list(types.resources)
            return _tagged(request, dump(with_groups(listed, versions.values())))
        ours = discovery.aggregated_groups(types.resources, wanted)
        self._forget_others(versions)
        answer = _tagged(request, dump(with_discovery(ours, versions.values(), self.learned)))
        answer.content_type = discovery.aggregated_media_type(wanted)
        return answer

    def _forget_others(self, versions: Mapping[GroupVersion, AggregatedVersion]) -> None:
        for gone in self.learned.keys() - versions.keys():
            del self.learned[gone]
            self.described.pop(gone, None)

    async def _openapi(
        self,
        parts: Sequence[str],
        request: Request,
        info: RequestInfo,
        user: User,
        versions: Mapping[GroupVersion, AggregatedVersion],
    ) -> Answer | None:
        if len(parts) != 5 or parts[2] != "apis":
            return None
        version = versions.get(GroupVersion(parts[3], parts[4]))
        return None if version is None else await self._passed(request, info, user, version)

    async def _passed(
        self, request: Request, info: RequestInfo, user: User, version: AggregatedVersion
    ) -> Answer:
        if not version.is_available:
            return unavailable("service unavailable")
        headers = forwarded(request.headers)
        lines = [
            *headers.items(),
            ("X-Forwarded-For", request.peer.address or "127.0.0.1"),
            ("X-Forwarded-Proto", "https"),
            *identity_lines(user.name, "", user.groups, user.extra),
        ]
        upgrade = request.headers.get("upgrade", "")
        asked = Asked(
            request.method,
            quote(info.path, safe=_PATH),
            request.query_string,
            lines,
            request.body,
            info.verb == "watch",
            upgrade if "upgrade" in request.headers.get("connection", "").lower() else "",
        )
        return await self._upstream.pass_on(version, asked)


def unavailable(text: str) -> Response:
    """Return what Kubernetes answers where another server is not to be had."""
    nosniff = (("X-Content-Type-Options", "nosniff"),)
    return Response(503, f"{text}\n".encode(), "text/plain; charset=utf-8", nosniff)


def _tagged(request: Request, body: bytes) -> Response:
    etag = f'"{discovery.content_hash(body)}"'
    headers = (("ETag", etag), ("Vary", "Accept"))
    if request.headers.get("if-none-match") == etag:
        return Response(status=304, headers=headers)
    return Response(body=body, headers=headers)
