"""A hub of several processes over a real etcd: one hub to whoever uses it.

Each test writes through one process what changes how a hub answers, and uses it through the others
in the very next request, without a retry.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.manifests import config_map, definition
from tests.kit.e2e.process_groups import Line, line_to_each, processes_of
from tests.kit.e2e.writing import eventually
from tests.kit.store.etcd_process import EtcdProcess

pytestmark = pytest.mark.etcd

ROOT = "/clusters/root"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_PROCESSES = 3


@pytest.fixture(scope="module")
def hub(etcd: EtcdProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("processes")
    # A worker may come to this module twice, with other tests between; etcd it starts once.
    prefix = f"/{folder.name}/"
    store = ("--store", "etcd", "--etcd-servers", etcd.url, "--etcd-prefix", prefix)
    flags = ("--processes", str(_PROCESSES), "--console-port", "0", "-v", "0")
    hub = Hub(folder, *store, *flags).start()
    yield hub
    assert hub.stop() == 0


@pytest.fixture
def lines(hub: Hub) -> Iterator[list[Line]]:
    lines = list(line_to_each(hub).values())
    yield lines
    for line in lines:
        line.close()


def made(line: Line, path: str, body: dict[str, Any]) -> dict[str, Any]:
    status, document = line.ask("POST", path, body)
    assert status == 201, document
    return document


def pairs(lines: list[Line]) -> Iterator[tuple[int, Line, Line]]:
    """Yield a number, who writes, and who is asked next."""
    for number, (here, there) in enumerate(itertools.permutations(lines, 2)):
        yield number, here, there


def test_every_process_takes_connections(lines: list[Line], hub: Hub) -> None:
    assert {line.pid for line in lines} == set(processes_of(hub))
    assert len(lines) == _PROCESSES


def test_a_type_defined_through_one_process_is_served_by_the_next(lines: list[Line]) -> None:
    for number, here, there in pairs(lines):
        group = f"g{number}.example.org"
        path = f"{ROOT}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made(here, path, definition(group, "tugs", "Tug"))
        tug = {"apiVersion": f"{group}/v1", "kind": "Tug", "metadata": {"name": "t"},
               "spec": {"size": 1}}  # fmt: skip
        made(there, f"{ROOT}/apis/{group}/v1/namespaces/default/tugs", tug)
        status, _ = here.ask("DELETE", f"{path}/tugs.{group}")
        assert status == 200


def test_a_right_granted_or_taken_through_one_process_counts_at_the_next(
    lines: list[Line],
) -> None:
    workspace = _workspace(lines[0], "rights")
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader"},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
        ],
    }
    made(lines[0], f"{workspace}{RBAC}/clusterroles", role)
    bindings = f"{workspace}{RBAC}/clusterrolebindings"
    for number, here, there in pairs(lines):
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"b{number}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "reader"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                          "name": "alice"}],
        }  # fmt: skip
        made(here, bindings, binding)
        assert there.ask("GET", f"{workspace}{CONFIG_MAPS}", as_user="alice")[0] == 200
        assert here.ask("DELETE", f"{bindings}/b{number}")[0] == 200
        assert there.ask("GET", f"{workspace}{CONFIG_MAPS}", as_user="alice")[0] == 403


def test_a_namespace_and_its_quota_made_through_one_process_hold_at_the_next(
    lines: list[Line],
) -> None:
    for number, here, there in pairs(lines):
        made(here, f"{ROOT}/api/v1/namespaces", _named("Namespace", f"n{number}"))
        inside = f"{ROOT}/api/v1/namespaces/n{number}"
        quota = _named("ResourceQuota", "few")
        quota["spec"] = {"hard": {"count/secrets": "1"}}
        made(there, f"{inside}/resourcequotas", quota)
        # As in Kubernetes, nothing is let in until the quota's use has been counted once.
        eventually(partial(_counted, there, f"{inside}/resourcequotas/few"))
        made(here, f"{inside}/secrets", _named("Secret", "first"))
        status, refused = there.ask("POST", f"{inside}/secrets", _named("Secret", "second"))
        assert status == 403, refused
        assert "exceeded quota: few" in refused["message"]
        assert here.ask("DELETE", inside)[0] == 200
        status, refused = there.ask("POST", f"{inside}/configmaps", config_map("late"))
        assert status in (403, 404), refused


def test_a_workspace_and_a_binding_made_through_one_process_are_used_through_the_next(
    lines: list[Line],
) -> None:
    exporter = _workspace(lines[0], "exporter")
    schema = {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": "v1.boats.sea.example.org"},
        "spec": {
            "group": "sea.example.org",
            "names": {"kind": "Boat", "plural": "boats", "singular": "boat",
                      "listKind": "BoatList"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True,
                          "schema": {"type": "object"}}],
        },
    }  # fmt: skip
    made(lines[0], f"{exporter}/apis/apis.kcp.io/v1alpha1/apiresourceschemas", schema)
    export = {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExport",
        "metadata": {"name": "sea"},
        "spec": {"latestResourceSchemas": ["v1.boats.sea.example.org"]},
    }
    made(lines[1], f"{exporter}/apis/apis.kcp.io/v1alpha1/apiexports", export)
    for number, here, there in pairs(lines):
        workspace = _workspace(here, f"fleet-{number}")
        binding = {
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIBinding",
            "metadata": {"name": "sea"},
            "spec": {"reference": {"export": {"path": "root:exporter", "name": "sea"}}},
        }
        made(there, f"{workspace}/apis/apis.kcp.io/v1alpha1/apibindings", binding)
        boat = {"apiVersion": "sea.example.org/v1", "kind": "Boat", "metadata": {"name": "b"}}
        made(here, f"{workspace}/apis/sea.example.org/v1/boats", boat)


def test_whichever_process_is_asked_the_metrics_are_those_of_all(lines: list[Line]) -> None:
    # Refused paths that nothing else in this module asks for, so that the count is known.
    for count, line in enumerate(lines, start=1):
        for _ in range(count):
            assert line.ask("GET", f"{ROOT}/api/v1/namespaces/metrics/secrets/x")[0] == 404
    counts = [_requests(line) for line in lines]
    assert counts == [sum(range(1, _PROCESSES + 1))] * _PROCESSES


def _requests(line: Line) -> float:
    text = line.ask("GET", "/metrics")[1]["text"]
    assert f"skerry_server_processes {float(_PROCESSES)}" in text
    return sum(
        float(row.rpartition(" ")[2])
        for row in text.splitlines()
        if row.startswith("apiserver_request_total{")
        and all(word in row for word in ('verb="GET"', 'resource="secrets"', 'code="404"'))
    )


def test_a_code_that_any_process_gives_signs_in_at_the_console(hub: Hub, lines: list[Line]) -> None:
    console = (hub.data_dir / "console.url").read_text().strip()
    for line in lines:
        status, code = line.ask("POST", "/skerry/console/codes", {})
        assert status == 201, code
        assert code["url"] == console
        assert _signed_in(console, code["code"]) == 204
    status, listed = lines[-1].ask("GET", "/skerry/console/sessions")
    assert status == 200
    assert len(listed["sessions"]) == _PROCESSES


def _signed_in(console: str, code: str) -> int:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    place = urlsplit(console)
    with contextlib.closing(
        http.client.HTTPSConnection(place.netloc, context=tls, timeout=30)
    ) as browser:
        headers = {"X-Skerry-Console": "1", "Origin": console, "Content-Type": "application/json"}
        browser.request("POST", "/console/session", json.dumps({"code": code}), headers)
        return browser.getresponse().status


def _counted(line: Line, quota: str) -> bool:
    return "used" in line.ask("GET", quota)[1].get("status", {})


def _named(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def _workspace(line: Line, name: str) -> str:
    obj = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}},
    }
    made(line, f"{ROOT}/apis/tenancy.kcp.io/v1alpha1/workspaces", obj)
    return f"/clusters/root:{name}"


class Writer(threading.Thread):
    """Creates ConfigMaps over one connection at a time; a new one whenever that breaks."""

    def __init__(self, hub: Hub, number: int, stop: threading.Event) -> None:
        super().__init__()
        self._hub = hub
        self._number = number
        self._stopping = stop
        self.acknowledged: list[str] = []
        self.failures: list[str] = []
        self.broken = 0

    def run(self) -> None:
        line = Line(self._hub)
        for count in itertools.count():
            if self._stopping.is_set():
                break
            name = f"w{self._number}-{count}"
            try:
                status, document = line.ask("POST", f"{ROOT}{CONFIG_MAPS}", config_map(name))
            except (OSError, http.client.HTTPException):
                self.broken += 1
                line.close()
                # At once, and without a retry: somebody else takes it.
                line = Line(self._hub)
                continue
            if status == 201:
                self.acknowledged.append(name)
            else:
                self.failures.append(f"{name}: {status} {document}")
        line.close()


def test_a_process_killed_under_load_loses_nothing_that_was_acknowledged(hub: Hub) -> None:
    stop = threading.Event()
    writers = [Writer(hub, number, stop) for number in range(8)]
    before = processes_of(hub)
    for writer in writers:
        writer.start()
    eventually(lambda: sum(len(writer.acknowledged) for writer in writers) > 100)
    with contextlib.closing(Line(hub)) as line:
        os.kill(line.pid, signal.SIGKILL)
        killed = line.pid
    eventually(lambda: sum(len(writer.acknowledged) for writer in writers) > 300)
    stop.set()
    for writer in writers:
        writer.join()
    assert not [failure for writer in writers for failure in writer.failures]
    eventually(lambda: len(processes_of(hub)) == _PROCESSES and killed not in processes_of(hub))
    assert len(set(before) & set(processes_of(hub))) == _PROCESSES - 1
    # The one that was started again answers like the others.
    acknowledged = {name for writer in writers for name in writer.acknowledged}
    for line in line_to_each(hub).values():
        _, listed = line.ask("GET", f"{ROOT}{CONFIG_MAPS}")
        assert acknowledged <= {item["metadata"]["name"] for item in listed["items"]}
        line.close()
