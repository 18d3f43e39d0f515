"""The engine: one request in, one answer out.

The order never varies: route, authenticate, authorize, limit, act; then count and audit. What a
request means is decided in ``rest`` and ``subresources``; here it only finds its way there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

import msgspec
from msgspec.structs import replace

from skerry.api.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    PageNotFound,
    ServiceUnavailable,
    TooManyRequests,
)
from skerry.api.keys import PLAIN
from skerry.api.kinds import GroupVersion, ResourceInfo
from skerry.kit.clock import SystemClock
from skerry.kit.log import Logger
from skerry.logic.machinery.durations import DurationError, parse_duration
from skerry.server.access import Attributes, Authenticator, Authorizer, Flow
from skerry.server.catalogue import Catalogue, TypeSet
from skerry.server.codec import dump
from skerry.server.conversion import Conversions
from skerry.server.documents import Documents
from skerry.server.extensions import IN_VIEWS, ExtensionHandler, Visit
from skerry.server.http.message import Answer, Request, Response, Stream
from skerry.server.observed import ObservedObjects
from skerry.server.offload.offload import Offload
from skerry.server.open_streams import OpenStreams, Right
from skerry.server.request.call import Call
from skerry.server.request.info import RequestInfo, request_info
from skerry.server.response.warnings import with_warnings
from skerry.server.security.authorization import forbidden
from skerry.server.user import User
from skerry.store.base import Overloaded, StoreError, Unavailable

log = Logger("server")

# What kubectl and client-go accept when they ask what there is.
_DISCOVERY = "as=APIGroupDiscoveryList"

# What a writer says that needs no answer but that it was done (RFC 7240).
_MINIMAL = "return=minimal"
_WRITES = frozenset(("create", "update", "patch"))
# Verbs that may find nothing to change and create it instead.
_CREATING = frozenset(("update", "patch"))

# Paths that answer whatever the method.
_METHODLESS = frozenset(("", "healthz", "livez", "readyz"))
# What runs something in a pod needs ``create``, however it is asked for: a WebSocket begins with
# a GET, and whoever may only read must not execute.
_EXECUTING = frozenset(("exec", "attach", "portforward"))
# Subresources that last as long as they last: they have no time limit.
_LASTING = _EXECUTING | {"log", "proxy"}

ResourceHandler = Callable[[Call], Awaitable[Answer]]
# On every answer: which history of objects it was given from. A client that remembers what it saw
# can tell a restored or replaced store from the one it knows before it believes an absence.
STORE_IDENTITY_HEADER = "X-Skerry-Store-Identity"
# A path that is no resource: gets the request and the cluster.
PathHandler = Callable[[Request, str], Awaitable[Answer]]


class Route(msgspec.Struct, frozen=True):
    """Where a request goes: the cluster, and the path within it.

    A view narrows that: to ``types`` of its own; collections to objects with ``labels`` and of
    which ``visible`` tells so by their key; single objects to those of which ``named`` does.
    ``guard`` says what must be allowed, and to whom, in place of the plain action; ``acting`` is
    as whom the request is then carried out. ``home`` is the cluster whose ServiceAccounts are at
    home there, if it is another. ``view`` names the view. ``visit`` answers, where that is neither
    a resource nor a path that is the same in every cluster.
    """

    cluster: str
    path: str
    types: TypeSet | None = None
    labels: str = ""
    guard: Callable[[User, RequestInfo], Iterable[Right]] | None = None
    visible: Callable[[str], bool] | None = None
    named: Callable[[str], bool] | None = None
    acting: Callable[[User], User] | None = None
    home: str = ""
    view: str = ""
    visit: ExtensionHandler | None = None


class Router(Protocol):
    """Finds the cluster a request is for."""

    def route(self, request: Request) -> Route:
        """Return cluster and path; raises an ApiError for a path that names none."""


class PlainRouter:
    """The only cluster there is."""

    def route(self, request: Request) -> Route:
        return Route(PLAIN, request.path)


class Recorder(Protocol):
    """Counts and audits finished requests."""

    def finished(
        self,
        request: Request,
        info: RequestInfo,
        user: User | None,
        answer: Answer,
        *,
        served: bool,
    ) -> None:
        """Note that *request* was answered; *served* tells whether the type it names is known."""


class Aggregated(Protocol):
    """What other servers serve in this one's name; nothing while there are no *services*."""

    services: ObservedObjects

    async def answer(
        self, request: Request, info: RequestInfo, user: User, types: TypeSet
    ) -> Answer | None:
        """Answer what is theirs; None for what is not."""

    def with_others(self, path: str, answer: Answer, types: TypeSet) -> Answer:
        """Return the index of OpenAPI documents with theirs in it."""


@dataclass(slots=True)
class Handlers:
    """Who acts on what. A subresource is found by group, resource and name, then by name alone;
    kinds that are asked rather than stored by group and resource."""

    verbs: Mapping[str, ResourceHandler]
    subresources: Mapping[tuple[str, str, str], ResourceHandler] = field(default_factory=dict)
    common_subresources: Mapping[str, ResourceHandler] = field(default_factory=dict)
    virtual: Mapping[tuple[str, str], ResourceHandler] = field(default_factory=dict)
    paths: Mapping[str, PathHandler] = field(default_factory=dict)
    # Whole trees below a path, such as /healthz/<check>.
    trees: Mapping[str, PathHandler] = field(default_factory=dict)
    # What other servers serve in this one's name.
    aggregated: Aggregated | None = None
    # What is offered beyond Kubernetes, by path within a cluster.
    extensions: Mapping[str, ExtensionHandler] = field(default_factory=dict)


class Engine:
    """Answers requests."""

    def __init__(
        self,
        catalogue: Catalogue,
        handlers: Handlers,
        authenticator: Authenticator,
        authorizer: Authorizer,
        flow: Flow,
        recorder: Recorder,
        *,
        router: Router | None = None,
        before: Callable[[Request], Awaitable[None]] | None = None,
        now: Callable[[], datetime] | None = None,
        identity: str = "",
        offload: Offload | None = None,
        conversions: Conversions | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._handlers = handlers
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._flow = flow
        self._recorder = recorder
        self._router: Router = router or PlainRouter()
        # What must be waited for before a request can find its way.
        self._before = before
        self._documents = Documents(now or SystemClock().now, offload)
        # Names the store on every answer.
        self._mark = (STORE_IDENTITY_HEADER, identity) if identity else None
        self._conversions = conversions
        self.streams = OpenStreams(authorizer)

    async def handle(self, request: Request) -> Answer:
        """Answer *request*; every refusal is an answer too."""
        info: RequestInfo | None = None
        user: User | None = None
        route: Route | None = None
        served = True
        try:
            if self._before is not None:
                await self._before(request)
            route = self._router.route(request)
            query = _query(request)
            info = request_info(request.method, route.path, query, route.cluster)
            if query and "timeout" in query:
                _check_timeout(info, query["timeout"])
            user = await self._identify(request, route.home or route.cluster)
            request.user = user
            rights = self._authorized(user, info, route)
            # Parts of an atomic batch need no seat: the batch has one.
            seat = None if request.commit else self._flow.admitted(info, user)
            if seat is None:
                answer = await self._act(request, info, user, route)
            else:
                async with seat:
                    answer = await self._act(request, info, user, route)
            if isinstance(answer, Stream):
                self._flow.check_watches(user, answer.watches)
                answer.run = self.streams.guarded(rights, answer.run, answer.recheck)
        except (ApiError, StoreError) as error:
            answer = _refusal(request, error)
            served = info is not None and self._serves(info, route)
        if info is None:
            info = RequestInfo(path=request.path, verb=request.method.lower())
        if user is not None and (headers := self._flow.headers(info, user)):
            answer.headers = (*answer.headers, *headers)
        # Some answers are made once and given often.
        if self._mark is not None and self._mark not in answer.headers:
            answer.headers = (*answer.headers, self._mark)
        self._recorder.finished(request, info, user, answer, served=served)
        return answer

    def _serves(self, info: RequestInfo, route: Route | None) -> bool:
        """Tell whether the type and subresource a failed request names are served there.

        A stranger's request derives nothing: a cluster nobody has used yet has the common types.
        """
        if route is None or not info.is_resource:
            return False
        types = route.types or self._catalogue.known_types(info.cluster)
        resource = types.find(info.group, info.version, info.resource)
        if resource is None or not info.subresource:
            return resource is not None
        return any(each.name == info.subresource for each in resource.info.subresources)

    async def _identify(self, request: Request, cluster: str) -> User:
        if request.peer.user is not None:
            return request.peer.user
        if self._flow.suspects:
            refusal = self._flow.refusal_of(request.peer.address)
            if refusal is not None and not self._authenticator.knows(request, cluster):
                raise refusal
        return await self._authenticator.authenticate(request, cluster)

    def _authorized(self, user: User, info: RequestInfo, route: Route) -> Sequence[Right]:
        """Return the rights by which a request passes; raises Forbidden where one lacks."""
        if route.guard is None:
            # Nearly every request: one right, and nothing to loop over.
            attributes = attributes_of(info)
            decision = self._authorizer.authorize(user, attributes)
            if not decision.allowed:
                raise forbidden(user, attributes, decision.reason)
            return ((user, attributes),)
        rights = tuple(route.guard(user, info))
        for who, attributes in rights:
            decision = self._authorizer.authorize(who, attributes)
            if not decision.allowed:
                raise forbidden(who, attributes, decision.reason)
        return rights

    def _require(self, user: User, info: RequestInfo, route: Route, verb: str) -> None:
        """Raise Forbidden unless a request were allowed with *verb*, too."""
        self._authorized(user, replace(info, verb=verb), route)

    async def _act(self, request: Request, info: RequestInfo, user: User, route: Route) -> Answer:
        types = route.types or self._catalogue.types(info.cluster)
        aggregated = self._handlers.aggregated
        if aggregated is not None and aggregated.services.by_place and request.commit is None:
            answer = await aggregated.answer(request, info, user, types)
            if answer is not None:
                return answer
        if not info.is_resource:
            return await self._path(request, info, types, user, route)
        resource = types.find(info.group, info.version, info.resource)
        if resource is None or (info.namespace and not _may_have_namespace(resource.info)):
            raise _nothing_at(info.path, types)
        acting = user if route.acting is None else route.acting(user)
        call = Call(request, info, acting, resource, types, route.labels, route.visible, route.view)
        call.warnings.extend(resource.deprecation)
        if info.verb in _CREATING:
            call.require = partial(self._require, user, info, route)
        if route.named is not None:
            _refuse_hidden(call, route.named)
        try:
            handler = self._handler(call)
            if resource.webhook is None or self._conversions is None:
                answer = await handler(call)
            else:
                answer = await self._conversions.run(call, partial(handler, call))
        except ApiError as error:
            error.warnings = call.warnings
            raise
        if info.verb in _WRITES:
            answer = _as_preferred(request, answer)
        return with_warnings(answer, call.warnings) if call.warnings else answer

    def _visit(self, info: RequestInfo, route: Route) -> ExtensionHandler | None:
        if route.visit is not None or (route.types is not None and info.path not in IN_VIEWS):
            return route.visit
        return self._handlers.extensions.get(info.path)

    def _handler(self, call: Call) -> ResourceHandler:
        info, resource = call.info, call.resource.info
        if info.subresource:
            return self._subresource_handler(call)
        virtual = self._handlers.virtual.get((resource.group, resource.resource))
        if virtual is not None:
            if info.verb not in resource.verbs:
                raise MethodNotAllowed
            return virtual
        if info.verb not in resource.verbs:
            raise MethodNotAllowed
        if info.verb == "create" and (info.name or (resource.namespaced and not info.namespace)):
            raise MethodNotAllowed
        if info.verb in _CREATING and not info.name:
            raise BadRequest("name must be provided") if call.resource.custom else MethodNotAllowed
        return self._handlers.verbs[info.verb]

    def _subresource_handler(self, call: Call) -> ResourceHandler:
        info, resource = call.info, call.resource.info
        declared = next((s for s in resource.subresources if s.name == info.subresource), None)
        if declared is None or (info.rest and info.subresource != "proxy"):
            raise NotFound.path()
        if info.verb not in declared.verbs:
            raise MethodNotAllowed
        handlers = self._handlers
        special = handlers.subresources.get((resource.group, resource.resource, info.subresource))
        if special is not None:
            return special
        common = handlers.common_subresources.get(info.subresource)
        if common is not None:
            return common
        return handlers.verbs[info.verb]

    async def _path(
        self, request: Request, info: RequestInfo, types: TypeSet, user: User, route: Route
    ) -> Answer:
        visit = self._visit(info, route)
        if visit is not None:
            return await visit(Visit(request, info.cluster, user, types))
        path = info.path.rstrip("/") or "/"
        if request.method not in ("GET", "HEAD") and self._reads_only(path, types):
            raise MethodNotAllowed
        handler = self._handlers.paths.get(path)
        if handler is None:
            handler = self._handlers.trees.get("/" + path.split("/", 2)[1])
        if handler is not None:
            return await handler(request, info.cluster)
        if path == "/":
            return Response(body=dump({"paths": sorted(self._paths(types))}))
        answer = await self._documents.answer(path, types, request, user)
        if answer is None:
            raise _nothing_at(path, types)
        if path.startswith("/openapi/") and self._handlers.aggregated is not None:
            return self._handlers.aggregated.with_others(path, answer, types)
        return answer

    def _reads_only(self, path: str, types: TypeSet) -> bool:
        """Tell whether a path refuses methods that write; some answer as to a GET, as in
        Kubernetes, and what is not there is not found."""
        first, *rest = path.split("/")[1:]
        if first in _METHODLESS or (first == "apis" and len(rest) < 2):
            return False
        if first == "apis" or (first == "api" and rest):
            place = GroupVersion("", rest[0]) if first == "api" else GroupVersion(*rest[:2])
            served = types.by_group_version.get(place, ())
            return bool(served) and not any(each.custom for each in served)
        known = ("api", "openapi", "version", "metrics")
        return first in known or path in self._handlers.paths or f"/{first}" in self._handlers.trees

    def _paths(self, types: TypeSet) -> Iterator[str]:
        yield from self._handlers.paths
        yield from self._handlers.extensions
        yield from ("/api", "/api/v1", "/apis", "/openapi/v2", "/openapi/v3")
        for group, version in types.by_group_version:
            if group:
                yield f"/apis/{group}"
                yield f"/apis/{group}/{version}"


def _may_have_namespace(info: ResourceInfo) -> bool:
    """Tell whether a path to the type may name a namespace; that of Namespaces names itself."""
    return info.namespaced or (info.resource == "namespaces" and not info.group)


def _refuse_hidden(call: Call, named: Callable[[str], bool]) -> None:
    """Refuse an object that a view does not have."""
    # A key without a name stands for what is about to be created there.
    if (call.info.name or call.info.verb == "create") and not named(call.key().path()):
        raise call.not_found()


def _query(request: Request) -> dict[str, str]:
    if not request.query_string:
        return {}
    try:
        return request.query
    except ValueError as error:
        raise BadRequest(f"query: {error}") from error


def attributes_of(info: RequestInfo) -> Attributes:
    """Return the action a request stands for."""
    if not info.is_resource:
        return Attributes(cluster=info.cluster, verb=info.verb, path=info.path)
    verb = info.verb
    if info.subresource in _EXECUTING and not info.group and info.resource == "pods":
        verb = "create"
    return Attributes(
        cluster=info.cluster,
        verb=verb,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name or info.selected_name,
        selected_node=info.selected_node,
    )


def _refusal(request: Request, error: ApiError | StoreError) -> Answer:
    """Return the answer to a request that failed."""
    if isinstance(error, StoreError):
        return error_answer(_store_failure(error))
    answer = error_answer(error, request.headers.get("accept", ""))
    return with_warnings(answer, error.warnings) if error.warnings else answer


def _store_failure(error: StoreError) -> ApiError:
    """Return what to answer when the store fails; what it cannot read, a person must see to."""
    if isinstance(error, Overloaded):
        return TooManyRequests(str(error))
    if isinstance(error, Unavailable):
        # In the details only, as advice. Clients repeat by themselves what has a ``Retry-After``,
        # and of some writes it is not known whether they happened.
        return ServiceUnavailable(str(error), details={"retryAfterSeconds": 1})
    log.error("the store cannot be read", error=error)
    return InternalError(str(error))


def error_answer(error: ApiError, accept: str = "") -> Response:
    """Return the answer that tells of *error*."""
    if _DISCOVERY in accept and error.code == 403:
        # kubectl shows why discovery is refused only if it is reported in plain text.
        return Response(error.code, error.message.encode(), "text/plain")
    if isinstance(error, PageNotFound):
        return Response(404, error.plain, "text/plain; charset=utf-8")
    return Response(
        status=error.code, body=dump(error.status()), headers=tuple(error.headers.items())
    )


def _nothing_at(path: str, types: TypeSet) -> NotFound:
    """Return that nothing is served at *path*: a Status where a group of ours is, as Kubernetes
    does; anywhere else, and in groups of custom types, a page that nobody knows."""
    first, *rest = path.split("/")[1:]
    group = rest[0] if first == "apis" and rest else ""
    if first == "api" or any(
        served and not served[0].custom
        for place, served in types.by_group_version.items()
        if group and place.group == group
    ):
        return NotFound.path()
    return PageNotFound.path()


def _as_preferred(request: Request, answer: Answer) -> Answer:
    """Return a success as its code alone to whoever prefers that; failures and streams are
    reported in full."""
    if request.headers.get("prefer") != _MINIMAL:
        return answer
    if not isinstance(answer, Response) or answer.status >= 300:
        return answer
    applied = ("Preference-Applied", _MINIMAL)
    return Response(204, b"", headers=(*answer.headers, applied))


def _check_timeout(info: RequestInfo, text: str) -> None:
    """Refuse a time limit that is none; requests that last as long as they last have no limit."""
    if info.verb == "watch" or info.subresource in _LASTING:
        return
    try:
        parse_duration(text)
    except DurationError as error:
        raise BadRequest(f"invalid timeout specified in the request URL - {error}") from error
