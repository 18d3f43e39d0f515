from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import orjson
import pytest
from prometheus_client import CollectorRegistry

from skerry.kit.ids import SeededIds
from skerry.server.flow import FairFlow
from skerry.server.http.message import Peer, Request, Response, Sender, Stream
from skerry.server.metrics import ServerMetrics, request_labels, scope
from skerry.server.recording import AuditIds, RequestRecorder
from skerry.server.request.info import RequestInfo, request_info
from skerry.server.security.audit import AuditLog, AuditSettings
from skerry.server.user import User
from tests.kit.server.clock import HandClock

BOB = User("bob", groups=("system:authenticated",))


class Recording:
    def __init__(self, audit: AuditLog | None = None) -> None:
        self.clock = HandClock()
        self.flow = FairFlow()
        self.metrics = ServerMetrics(CollectorRegistry(), self.flow)
        self.recorder = RequestRecorder(self.metrics, self.flow, self.clock, SeededIds(1), audit)

    def request(self, method: str, target: str, **headers: str) -> tuple[Request, RequestInfo]:
        path, _, query = target.partition("?")
        peer = Peer("10.0.0.9")
        request = Request(method, path, query, headers, b"secret body", peer)
        request.received = self.clock.monotonic()
        return request, request_info(method, path, request.query, "local")


def test_requests_are_counted_under_kubernetes_names() -> None:
    r = Recording()
    request, info = r.request("GET", "/apis/apps/v1/namespaces/ns/deployments?limit=5")
    r.clock.advance(0.03)
    answer = Response(200)
    r.recorder.finished(request, info, BOB, answer)
    labels = ("LIST", "", "apps", "v1", "deployments", "", "namespace", "apiserver")
    assert r.metrics.requests.value((*labels, "200")) == 1
    assert r.metrics.request_seconds.count(labels) == 1
    assert dict(answer.headers)["Audit-Id"]


@pytest.mark.parametrize(
    ("method", "target", "content_type", "verb", "wanted_scope", "dry_run"),
    [
        ("POST", "/api/v1/namespaces/ns/pods?dryRun=All", "", "POST", "resource", "All"),
        ("GET", "/api/v1/namespaces/ns/pods/x", "", "GET", "resource", ""),
        ("GET", "/api/v1/nodes?watch=1", "", "WATCH", "cluster", ""),
        ("PATCH", "/api/v1/nodes/n", "application/apply-patch+yaml", "APPLY", "resource", ""),
        ("PATCH", "/api/v1/nodes/n", "application/merge-patch+json", "PATCH", "resource", ""),
        ("DELETE", "/api/v1/nodes", "", "DELETECOLLECTION", "cluster", ""),
        ("GET", "/version", "", "GET", "", ""),
    ],
)
def test_labels_report_verb_scope_and_dry_run(
    method: str, target: str, content_type: str, verb: str, wanted_scope: str, dry_run: str
) -> None:
    headers = {"content-type": content_type} if content_type else {}
    path, _, query = target.partition("?")
    request = Request(method, path, query, headers)
    info = request_info(method, path, request.query, "local")
    labels = request_labels(request, info)
    assert (labels[0], labels[1], scope(info)) == (verb, dry_run, wanted_scope)


def test_paths_that_were_not_found_leave_no_series() -> None:
    r = Recording()
    for number in range(20):
        request, info = r.request("GET", f"/nothing/{number}")
        r.recorder.finished(request, info, BOB, Response(404))
    assert len(r.metrics.requests._values) == 1


async def test_a_watch_counts_as_long_running_until_it_ends() -> None:
    r = Recording()
    release = asyncio.Event()

    async def run(_: Sender) -> None:
        await release.wait()

    request, info = r.request("GET", "/api/v1/pods?watch=true")
    answer = Stream(run)
    r.recorder.finished(request, info, BOB, answer)
    labels = ("WATCH", "", "v1", "pods", "", "cluster", "apiserver")
    watching = asyncio.ensure_future(answer.run(None))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert r.metrics.long_running.value(labels) == 1
    assert r.flow.watches == 1
    release.set()
    await watching
    assert r.metrics.long_running.value(labels) == 0
    assert r.flow.watches == 0


async def test_the_audit_log_names_everything_and_holds_no_bodies(tmp_path: Path) -> None:
    clock = HandClock()
    log = AuditLog(AuditSettings(tmp_path / "logs" / "audit.log"), clock)
    r = Recording(log)
    request, info = r.request(
        "POST",
        "/api/v1/namespaces/ns/secrets?fieldManager=x",
        authorization="Bearer hunter2",
        **{"user-agent": "kubectl/v1.32"},
    )
    request.impersonator = User("alice", "7", ("dev",), {"scope": ("a",)})
    r.clock.advance(1)
    answer = Response(201, b"secret answer")
    r.recorder.finished(request, info, BOB, answer)
    await log.flush()
    text = (tmp_path / "logs" / "audit.log").read_text()
    assert "hunter2" not in text
    assert "secret body" not in text
    assert "secret answer" not in text
    event = orjson.loads(text)
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": dict(answer.headers)["Audit-Id"],
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/ns/secrets?fieldManager=x",
        "verb": "create",
        "user": {"username": "alice", "uid": "7", "groups": ["dev"], "extra": {"scope": ["a"]}},
        "impersonatedUser": {"username": "bob", "groups": ["system:authenticated"]},
        "sourceIPs": ["10.0.0.9"],
        "userAgent": "kubectl/v1.32",
        "objectRef": {"resource": "secrets", "namespace": "ns", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": "2030-01-01T00:00:00.000000Z",
        "stageTimestamp": "2030-01-01T00:00:01.000000Z",
        "annotations": {"authorization.k8s.io/decision": "allow"},
    }


async def test_the_audit_log_names_the_workspace_as_kcp_does(tmp_path: Path) -> None:
    log = AuditLog(AuditSettings(tmp_path / "audit.log"), HandClock())
    r = Recording(log)
    request, info = r.request("GET", "/api/v1/secrets")
    there = msgspec.structs.replace(info, cluster="2hc3")
    r.recorder.finished(request, there, BOB, Response(200, b""))
    await log.flush()
    event = orjson.loads((tmp_path / "audit.log").read_text())
    assert event["annotations"]["tenancy.kcp.io/workspace"] == "2hc3"


def test_audit_ids_are_unique_and_look_like_uuids() -> None:
    import uuid

    ids = AuditIds(SeededIds(1))
    made = [ids.next() for _ in range(100)]
    assert len(set(made)) == 100
    assert str(uuid.UUID(made[0])) == made[0]


async def test_metrics_are_served_as_text() -> None:
    r = Recording()
    r.metrics.register_process()
    request, info = r.request("GET", "/api/v1/pods")
    r.recorder.finished(request, info, BOB, Response(200))
    answer = await r.metrics.handle(request, "local")
    assert isinstance(answer, Response)
    body = answer.body
    assert isinstance(body, bytes)
    for name in (
        b"apiserver_request_total{",
        b"apiserver_request_duration_seconds_bucket{",
        b'apiserver_current_inflight_requests{request_kind="readOnly"} 0.0',
        b"apiserver_registered_watchers 0.0",
        b"process_resident_memory_bytes",
    ):
        assert name in body


async def test_an_audit_event_repeats_little_of_a_long_request(tmp_path: Path) -> None:
    log = AuditLog(AuditSettings(tmp_path / "audit.log"), HandClock())
    r = Recording(log)
    long = "x" * 60_000
    request, info = r.request(
        "GET",
        f"/apis/{long}/v1/namespaces/{long}/things/{long}?{long}",
        **{"user-agent": long, "audit-id": long},
    )
    request.impersonator = User(long, long, (long,) * 100, {long: (long,) * 100})
    r.recorder.finished(request, info, request.impersonator, Response(200))
    await log.flush()
    (line,) = (tmp_path / "audit.log").read_bytes().splitlines()
    assert len(line) < 50_000
    assert orjson.loads(line)["requestURI"].endswith("more characters)")


@pytest.mark.parametrize(
    ("user", "code"),
    [(None, 401), (User("system:anonymous", groups=("system:unauthenticated",)), 200), (BOB, 403)],
    ids=["unauthenticated", "anonymous", "refused"],
)
async def test_events_of_refused_requests_are_limited_and_the_rest_is_counted(
    tmp_path: Path, user: User | None, code: int
) -> None:
    log = AuditLog(AuditSettings(tmp_path / "audit.log"), HandClock())
    r = Recording(log)
    request, info = r.request("GET", "/api/v1/secrets")
    for _ in range(1000):
        r.recorder.finished(request, info, user, Response(code))
    r.recorder.finished(request, info, User("alice", groups=("a",)), Response(403))
    r.clock.advance(1)
    r.recorder.finished(request, info, user, Response(code))
    await log.flush()
    events = [orjson.loads(line) for line in (tmp_path / "audit.log").read_bytes().splitlines()]
    assert len(events) == 200 + 1 + 1
    assert events[200]["user"]["username"] == "alice"
    assert events[-1]["annotations"]["audit.edge.kcp.io/suppressed-events"] == "800"
    assert r.metrics.audit_suppressed.value() == 800


async def test_every_request_that_was_carried_out_for_a_known_user_is_audited(
    tmp_path: Path,
) -> None:
    log = AuditLog(AuditSettings(tmp_path / "audit.log"), HandClock())
    r = Recording(log)
    request, info = r.request("GET", "/api/v1/secrets")
    for code in (200, 201, 404, 409, 422) * 100:
        r.recorder.finished(request, info, BOB, Response(code))
    await log.flush()
    assert len((tmp_path / "audit.log").read_bytes().splitlines()) == 500


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        ("0b4f-11", "0b4f-11"),
        ("a" * 5000, "a" * 64),
        ("good\r\nSet-Cookie: x", "good"),
        ("trace:1.2_3", "trace:1.2_3"),
    ],
)
def test_an_audit_id_that_a_client_chose_is_kept_as_far_as_it_is_plain(
    chosen: str, wanted: str
) -> None:
    r = Recording()
    request, info = r.request("GET", "/api/v1/secrets", **{"audit-id": chosen})
    answer = Response(200)
    r.recorder.finished(request, info, BOB, answer)
    assert dict(answer.headers)["Audit-Id"] == wanted


@pytest.mark.parametrize("chosen", ["", " ", "\u2028", "<script>"])
def test_an_audit_id_that_is_not_plain_is_replaced(chosen: str) -> None:
    r = Recording()
    request, info = r.request("GET", "/api/v1/secrets", **{"audit-id": chosen})
    answer = Response(200)
    r.recorder.finished(request, info, BOB, answer)
    assert len(dict(answer.headers)["Audit-Id"]) == 36


def test_authentications_are_counted_by_what_became_of_them() -> None:
    r = Recording()
    for user, status, headers in (
        (BOB, 200, {"authorization": "Bearer good"}),
        (BOB, 401, {"authorization": "Bearer good"}),  # somebody else's answer, handed on
        (None, 401, {"authorization": "Bearer bad"}),
        (None, 401, {}),
        (None, 404, {}),  # nobody looked
    ):
        request, info = r.request("GET", "/api/v1/nodes", **headers)
        r.recorder.finished(request, info, user, Response(status))
    counted = r.metrics.authentication_attempts
    found = {result: counted.value((result,)) for result in ("success", "error", "failure")}
    assert found == {"success": 2, "error": 1, "failure": 1}
