"""A hub of two processes over a real etcd, one of which is stuck for a while, or etcd is."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.manifests import config_map, definition
from tests.kit.e2e.process_groups import Line, line_to_each, processes_of
from tests.kit.e2e.writing import PATIENCE_SECONDS, Writer, eventually
from tests.kit.store.etcd_process import EtcdProcess

pytestmark = pytest.mark.etcd

ROOT = "/clusters/root"
CONFIG_MAPS = f"{ROOT}/api/v1/namespaces/default/configmaps"
SECRETS = f"{ROOT}/api/v1/namespaces/default/secrets"
RBAC = f"{ROOT}/apis/rbac.authorization.k8s.io/v1"
DEFINITIONS = f"{ROOT}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SILENT = "internal server error: the store has not answered for 2 s\n"


@pytest.fixture(scope="module")
def stopping_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path_factory.mktemp("etcd"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="module")
def hub(stopping_etcd: EtcdProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("stuck")
    store = ("--store", "etcd", "--etcd-servers", stopping_etcd.url)
    hub = Hub(folder, *store, "--processes", "2", "--console-port", "0", "-v", "0").start()
    yield hub
    assert hub.stop() == 0


@contextlib.contextmanager
def stuck(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_while_a_process_is_stuck_the_other_takes_what_comes_and_no_answer_is_stale_after(
    hub: Hub,
) -> None:
    with contextlib.ExitStack() as lines:
        here, there = line_to_each(hub).values()
        for line in (here, there):
            lines.callback(line.close)
        for _ in range(7):
            assert here.ask("GET", f"{SECRETS}/nobody")[0] == 404
        assert _refused(there) == 7, "what it counts is seen before it is stuck"
        with stuck(here.pid):
            for number in range(5):
                new = Line(hub)
                lines.callback(new.close)
                assert new.pid == there.pid
                assert new.ask("POST", CONFIG_MAPS, config_map(f"s{number}"))[0] == 201
            group = "stuck.example.org"
            assert there.ask("POST", DEFINITIONS, definition(group, "tugs", "Tug"))[0] == 201
            for kind, obj in (("clusterroles", _role()), ("clusterrolebindings", _binding())):
                assert there.ask("POST", f"{RBAC}/{kind}", obj)[0] == 201
            begun = time.monotonic()
            assert _refused(there) == 7
            assert "skerry_server_processes 1.0" in there.ask("GET", "/metrics")[1]["text"]
            assert time.monotonic() - begun < 10
        # The very first answer knows of it, or is a refusal that says to try again.
        tug = {"apiVersion": f"{group}/v1", "kind": "Tug", "metadata": {"name": "t"},
               "spec": {"size": 1}}  # fmt: skip
        assert (
            _unless_behind(here, "POST", f"{ROOT}/apis/{group}/v1/namespaces/default/tugs", tug)
            == 201
        )
        assert _unless_behind(here, "GET", CONFIG_MAPS, as_user="alice") == 200
        _, listed = here.ask("GET", CONFIG_MAPS)
        found = {item["metadata"]["name"] for item in listed["items"]}
        assert found >= {f"s{number}" for number in range(5)}
        assert sorted(processes_of(hub)) == sorted((here.pid, there.pid)), "it was given time"


def test_while_etcd_is_stuck_nothing_is_lost_and_everything_goes_on_after(
    hub: Hub, stopping_etcd: EtcdProcess
) -> None:
    with load(hub) as (watcher, writers):
        with contextlib.closing(Line(hub)) as line:
            with stopping_etcd.stuck():
                begun = time.monotonic()
                status, document = line.ask("GET", "/livez/etcd")
                assert (status, document["text"]) == (500, _SILENT)
                assert line.ask("GET", "/livez/ping")[0] == 200
                assert line.ask("GET", "/metrics")[0] == 200
                assert time.monotonic() - begun < 8
            eventually(lambda: line.ask("GET", "/readyz")[0] == 200)
        before = [len(each.acknowledged) for each in writers]
        eventually(
            lambda: all(len(w.acknowledged) > n + 5 for w, n in zip(writers, before, strict=True))
        )
    # What etcd kept waiting for less than the hub's patience is answered as if nothing had been.
    assert not [refused for writer in writers for refused in writer.refused]
    acknowledged = {name for writer in writers for name in writer.acknowledged}
    assert watcher.seen >= acknowledged
    for line in line_to_each(hub).values():
        with contextlib.closing(line):
            _, listed = line.ask("GET", CONFIG_MAPS)
            assert {item["metadata"]["name"] for item in listed["items"]} >= acknowledged


@contextlib.contextmanager
def load(hub: Hub) -> Iterator[tuple[Watcher, list[Writer]]]:
    """Write and watch meanwhile; at the end what was acknowledged has been awaited in the watch."""
    stop = threading.Event()
    watcher = Watcher(hub)
    writers = [Writer(hub, number, CONFIG_MAPS, stop) for number in range(6)]
    for thread in (watcher, *writers):
        thread.start()
    try:
        eventually(lambda: all(len(writer.acknowledged) > 5 for writer in writers))
        yield watcher, writers
        stop.set()
        for writer in writers:
            writer.join()
        eventually(lambda: all(watcher.seen >= set(writer.acknowledged) for writer in writers))
    finally:
        stop.set()
        watcher.close()


class Watcher(threading.Thread):
    """One watch, never begun again: what it misses is missed."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(daemon=True)
        self._line = Line(hub)
        self.seen: set[str] = set()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            for event in self._line.watch(CONFIG_MAPS):
                self.seen.add(event["object"]["metadata"]["name"])

    def close(self) -> None:
        self._line.cut()
        self.join()
        self._line.close()


def _unless_behind(line: Line, method: str, path: str, body: Any = None, as_user: str = "") -> int:
    """Return the first status that is not a refusal for being behind."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        status, document = line.ask(method, path, body, as_user)
        if status != 429:
            return status
        assert document["details"]["retryAfterSeconds"] == 1
        assert time.monotonic() < deadline


def _refused(line: Line) -> float:
    """Return how many Secrets were not found, as the metrics of the group say."""
    text = line.ask("GET", "/metrics")[1]["text"]
    return sum(
        float(row.rpartition(" ")[2])
        for row in text.splitlines()
        if row.startswith("apiserver_request_total{")
        and all(word in row for word in ('verb="GET"', 'resource="secrets"', 'code="404"'))
    )


def _role() -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "lister"},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
        ],
    }


def _binding() -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "lister"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "lister"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }  # fmt: skip
