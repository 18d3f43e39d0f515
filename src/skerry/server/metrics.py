"""The server's metrics, under Kubernetes' names where Kubernetes has one."""

from __future__ import annotations

import asyncio
from functools import partial

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from skerry.kit.metrics import (
    CONTENT_TYPE,
    Counter,
    Gauge,
    Histogram,
    Labels,
    Reading,
    exposition,
)
from skerry.server.flow import FairFlow
from skerry.server.http.message import Answer, Request, Response
from skerry.server.request.info import RequestInfo

_SECONDS = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30,
    45, 60,
)  # fmt: skip
_REQUEST = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_LONG_RUNNING = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_COMPONENT = "apiserver"
# Kubernetes' verbs in metrics are HTTP's where there is one to one; a create is a POST.
_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
    "post": "POST",
    "put": "PUT",
    "head": "GET",
}
# Paths that are counted by name; of a whole tree its root, of anything else nothing.
_PATHS = frozenset(
    (
        "/", "/api", "/apis", "/api/v1", "/version", "/metrics", "/openapi/v2", "/openapi/v3",
        "/.well-known/openid-configuration", "/openid/v1/jwks", "/extensions",
        "/extensions/v1/watch", "/extensions/v1/batch", "/healthz", "/livez", "/readyz",
    )
)  # fmt: skip
_TREES = ("/apis/", "/api/", "/openapi/v3/", "/healthz/", "/livez/", "/readyz/")
OTHER = "other"
# What becomes of an authentication.
_SUCCESS, _FAILURE, _ERROR = ("success",), ("failure",), ("error",)
_APPLY = "application/apply-patch"
# Kinds of requests whose labels are kept, as many as there are series of one metric.
_MAX_KNOWN = 2000


class ServerMetrics:
    """All of them. The registry is injected: tests and embedded servers have their own."""

    def __init__(self, registry: CollectorRegistry, flow: FairFlow) -> None:
        self.registry = registry
        self.requests = Counter(
            registry,
            "apiserver_request_total",
            "Requests by verb, resource and answer.",
            (*_REQUEST, "code"),
        )
        self.request_seconds = Histogram(
            registry,
            "apiserver_request_duration_seconds",
            "How long requests took, watches not counted.",
            _REQUEST,
            _SECONDS,
        )
        self.long_running = Gauge(
            registry,
            "apiserver_longrunning_requests",
            "Watches and other requests that go on, now.",
            _LONG_RUNNING,
        )
        self.watch_events = Counter(
            registry,
            "apiserver_watch_events_total",
            "Events sent to watches.",
            ("group", "version", "kind"),
        )
        self.storage_objects = Gauge(
            registry,
            "apiserver_storage_objects",
            "Stored objects by resource, as of the last count.",
            ("resource",),
        )
        self.store_seconds = Histogram(
            registry,
            "etcd_request_duration_seconds",
            "How long the store took, whichever it is, by operation.",
            ("operation", "type"),
            _SECONDS,
        )
        self.cache_lists = Counter(
            registry,
            "apiserver_cache_list_total",
            "Lists at resourceVersion=0, which a cache may answer.",
            ("resource_prefix", "index"),
        )
        self.audit_events = Counter(
            registry, "apiserver_audit_event_total", "Audit events written or queued."
        )
        self.audit_suppressed = Counter(
            registry,
            "apiserver_audit_event_suppressed_total",
            "Audit events of refused or anonymous requests left out because there were too many.",
        )
        self.authentication_attempts = Counter(
            registry, "authentication_attempts_total", "Authentications by result.", ("result",)
        )
        self._known: dict[tuple[object, ...], tuple[Labels, Labels]] = {}
        # Counted with nearly every request: one call and no question.
        self.identified = partial(self.authentication_attempts.inc, _SUCCESS)
        self._register_readings(registry, flow)

    def _register_readings(self, registry: CollectorRegistry, flow: FairFlow) -> None:
        Reading(
            registry,
            "apiserver_current_inflight_requests",
            "Requests that hold a seat now.",
            ("request_kind",),
            lambda: {
                ("readOnly",): flow.reading.in_flight,
                ("mutating",): flow.mutating.in_flight,
                ("anonymous",): flow.anonymous.in_flight,
                ("edges",): flow.edges.in_flight,
            },
        )
        Reading(
            registry,
            "apiserver_current_inqueue_requests",
            "Requests that wait for a seat now.",
            ("request_kind",),
            lambda: {
                ("readOnly",): flow.reading.waiting,
                ("mutating",): flow.mutating.waiting,
                ("anonymous",): flow.anonymous.waiting,
                ("edges",): flow.edges.waiting,
            },
        )
        Reading(
            registry,
            "apiserver_flowcontrol_rejected_requests_total",
            "Requests refused with 429 since the start.",
            ("request_kind",),
            lambda: {
                ("readOnly",): flow.reading.rejected,
                ("mutating",): flow.mutating.rejected,
                ("anonymous",): flow.anonymous.rejected,
                ("edges",): flow.edges.rejected,
                ("priorityLevel",): flow.classes.priority_levels.rejected,
            },
        )
        self._register_flow_classes(registry, flow)
        Reading(
            registry,
            "apiserver_registered_watchers",
            "Watches open now.",
            (),
            lambda: {(): flow.watches},
        )

        # Added up over the processes of a group, like everything else.
        Reading(
            registry,
            "skerry_server_processes",
            "Processes of this server that these numbers are of.",
            (),
            lambda: {(): 1},
        )

    def _register_flow_classes(self, registry: CollectorRegistry, flow: FairFlow) -> None:
        classes = flow.classes
        Reading(
            registry,
            "apiserver_flowcontrol_dispatched_requests_total",
            "Requests by the FlowSchema they fell to and its priority level.",
            ("priority_level", "flow_schema"),
            classes.dispatched,
        )
        Reading(
            registry,
            "apiserver_flowcontrol_nominal_limit_seats",
            "Seats that each priority level's shares stand for.",
            ("priority_level",),
            classes.nominal_seats,
        )

    def register_process(self) -> None:
        """Add the process's memory, processor time and files; once per process."""
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def finished(
        self,
        request: Request,
        info: RequestInfo,
        code: int,
        seconds: float | None,
        *,
        served: bool = True,
    ) -> None:
        """Count a finished request; *seconds* is None when unknown or without meaning.

        *served* tells whether the type it names is one the server has.
        """
        labels, counted = self._labels(request, info, code, served=served)
        self.requests.inc(counted)
        if seconds is not None:
            self.request_seconds.observe(seconds, labels)

    def _labels(
        self, request: Request, info: RequestInfo, code: int, *, served: bool
    ) -> tuple[Labels, Labels]:
        """Return the label values of a request, without and with its code."""
        if not served or not info.is_resource or request.query_string or info.verb == "patch":
            labels = request_labels(request, info, served=served)
            return labels, (*labels, str(code))
        # Nearly every request: nothing else of it counts.
        key = (
            info.verb, info.group, info.version, info.resource, info.subresource,
            not info.name, not info.namespace, code,
        )  # fmt: skip
        known = self._known.get(key)
        if known is None:
            labels = request_labels(request, info)
            known = labels, (*labels, str(code))
            if len(self._known) < _MAX_KNOWN:
                self._known[key] = known
        return known

    def unidentified(self, request: Request, code: int) -> None:
        """Count that it did not become known who sent a request: failure where it showed no
        credentials, error where they do not hold. Otherwise it was refused before anybody looked.
        """
        if code == 401:
            shown = "authorization" in request.headers or request.peer.certificate is not None
            self.authentication_attempts.inc(_ERROR if shown else _FAILURE)

    async def handle(self, _: Request, __: str) -> Answer:
        """Answer ``/metrics``."""
        loop = asyncio.get_running_loop()
        body = await loop.run_in_executor(None, exposition, self.registry)
        return Response(body=body, content_type=CONTENT_TYPE)


def request_labels(request: Request, info: RequestInfo, *, served: bool = True) -> Labels:
    """Return the label values of a request.

    Of a type that is not *served* no name is kept: it is the client's invention.
    """
    verb = _VERBS.get(info.verb, "OTHER")
    if not info.is_resource:
        return (verb, "", "", "", "", _path_label(info.path), "", _COMPONENT)
    if not served:
        return (verb, "", OTHER, OTHER, OTHER, "", scope(info), _COMPONENT)
    dry_run = ""
    if verb == "PATCH" and request.headers.get("content-type", "").startswith(_APPLY):
        verb = "APPLY"
    if request.query_string and request.query.get("dryRun") == "All":
        dry_run = "All"
    return (
        verb,
        dry_run,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        scope(info),
        _COMPONENT,
    )


def _path_label(path: str) -> str:
    if path in _PATHS:
        return path
    return next((tree.rstrip("/") for tree in _TREES if path.startswith(tree)), "")


def long_running_labels(info: RequestInfo) -> Labels:
    """Return the label values of a request that goes on."""
    verb = _VERBS.get(info.verb, "OTHER")
    return (
        verb,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        scope(info),
        _COMPONENT,
    )


def scope(info: RequestInfo) -> str:
    """Return how much a request is about: one object, a namespace, or the cluster."""
    if not info.is_resource:
        return ""
    if info.name or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"
