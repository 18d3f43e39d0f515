"""Three hubs over three etcd members: any of them may be asked, and one of each may die.

While writers and a watch run, one hub and one etcd member are killed as by a power switch. What
was acknowledged is there afterwards, the watch on a surviving hub has reported every object exactly
once, and what is written through one hub can be read through another once its revision is known.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import signal
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from skerry.app.kubeconfig_files import load
from skerry.cli.hub_client import HubClient, Overrides, RequestFailed, target_of
from tests.kit.e2e.hubs import Hub
from tests.kit.store.etcd_process import EtcdProcess

pytestmark = pytest.mark.etcd

WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_WRITERS = 3


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[EtcdProcess]]:
    cluster = EtcdProcess.cluster(tmp_path / "etcd", 3)
    for member in cluster:
        member.start()
    yield cluster
    for member in cluster:
        member.kill()


@pytest.fixture
def hubs(members: list[EtcdProcess], tmp_path: Path) -> Iterator[list[Hub]]:
    servers = ",".join(member.url for member in members)
    flags = ("--store", "etcd", "--etcd-servers", servers, "-v", "0")
    hubs = [Hub(tmp_path / f"hub-{number}", *flags) for number in range(3)]
    hubs[0].start()
    for other in hubs[1:]:
        # One authority and one set of keys, so that all of them know the same users.
        shutil.copytree(hubs[0].data_dir / "pki", other.data_dir / "pki")
    starting = [threading.Thread(target=other.start) for other in hubs[1:]]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()
    yield hubs
    for hub in hubs:
        hub.stop(signal.SIGKILL)


def client_of(hub: Hub, context: str = "root") -> HubClient:
    return HubClient(target_of(load([hub.kubeconfig]), Overrides(context=context)))


def asked(hub: Hub, path: str, context: str = "root") -> dict[str, Any]:
    """Ask one question over a connection of its own."""
    with contextlib.closing(client_of(hub, context)) as client:
        return client.get(f"{hub.url}{path}")


class Writer(threading.Thread):
    """Creates workspaces and ConfigMaps through whichever hub answers, and notes what counts."""

    def __init__(self, number: int, hubs: list[Hub], stop: threading.Event) -> None:
        super().__init__()
        self.number = number
        self.hubs = hubs
        self.stop = stop
        self.acknowledged: list[tuple[str, str]] = []
        self.failures: list[str] = []
        self._clients = [client_of(hub) for hub in hubs]

    def run(self) -> None:
        count = 0
        while not self.stop.is_set():
            name = f"w{self.number}-{count}"
            self._create(count, "root", WORKSPACES, _workspace(name))
            self._create(count + 1, f"root:{name}", CONFIG_MAPS, _config_map(name))
            self.acknowledged.append((f"root:{name}", name))
            count += 1
        for client in self._clients:
            client.close()

    def _create(self, turn: int, where: str, path: str, obj: dict[str, Any]) -> None:
        """Create *obj*, asking one hub after the other until one says that it is there."""
        for attempt in range(400):
            index = (self.number + turn + attempt) % len(self.hubs)
            url = f"{self.hubs[index].url}/clusters/{where}{path}"
            try:
                self._clients[index].post(url, obj)
            except RequestFailed as error:
                if error.reason == "AlreadyExists":
                    return
                if error.code in (400, 401, 404, 405, 422):
                    self.failures.append(f"{url}: {error}")
                    return
                time.sleep(0.02)
                continue
            return
        self.failures.append(f"{path}: no hub answered")


def _workspace(name: str) -> dict[str, Any]:
    spec = {"type": {"name": "universal", "path": "root"}}
    return {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
            "metadata": {"name": name}, "spec": spec}  # fmt: skip


def _config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


class Watch(threading.Thread):
    """A watch across all workspaces on one hub, resumed where it ended."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(daemon=True)
        self.hub = hub
        self.names: list[str] = []
        self.changed = threading.Condition()
        self.stopped = threading.Event()
        listed = asked(hub, "/clusters/*/api/v1/configmaps?limit=1", "system:admin")
        self._version = listed["metadata"]["resourceVersion"]

    def run(self) -> None:
        config = yaml.safe_load(self.hub.kubeconfig.read_text())
        token = next(u["user"]["token"] for u in config["users"] if u["name"] == "shard-admin")
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        address = urlsplit(self.hub.url).netloc
        connection = http.client.HTTPSConnection(address, context=tls, timeout=60)
        path = "/clusters/*/api/v1/configmaps?watch=true&allowWatchBookmarks=true"
        connection.request(
            "GET",
            f"{path}&resourceVersion={self._version}",
            headers={"Authorization": f"Bearer {token}"},
        )
        answer = connection.getresponse()
        while not self.stopped.is_set() and (line := answer.readline()):
            event = json.loads(line)
            with self.changed:
                if event["type"] == "ADDED":
                    self.names.append(event["object"]["metadata"]["name"])
                elif event["type"] == "ERROR":
                    self.names.append(f"ERROR {event['object']}")
                self.changed.notify_all()
        connection.close()

    def await_names(self, wanted: set[str]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: wanted <= set(self.names), timeout=60), (
                f"never notified of {sorted(wanted - set(self.names))[:5]}"
            )


def test_a_hub_and_an_etcd_member_die_under_load(
    hubs: list[Hub], members: list[EtcdProcess]
) -> None:
    watch = Watch(hubs[2])
    watch.start()
    stop = threading.Event()
    writers = [Writer(number, hubs, stop) for number in range(_WRITERS)]
    for writer in writers:
        writer.start()
    _await_writes(writers, 30)
    members[0].kill()
    _await_writes(writers, 30)
    hubs[0].stop(signal.SIGKILL)
    _await_writes(writers, 60)
    stop.set()
    for writer in writers:
        writer.join()
    assert not [failure for writer in writers for failure in writer.failures]
    acknowledged = [pair for writer in writers for pair in writer.acknowledged]
    for survivor in hubs[1:]:
        listed = asked(survivor, "/clusters/*/api/v1/configmaps", "system:admin")["items"]
        present = {item["metadata"]["name"] for item in listed}
        assert {name for _, name in acknowledged} <= present
        workspaces = asked(survivor, f"/clusters/root{WORKSPACES}")["items"]
        assert all(item["status"]["phase"] == "Ready" for item in workspaces)
    watch.await_names({name for _, name in acknowledged})
    own = [name for name in watch.names if name.startswith("w")]
    assert len(own) == len(set(own)), "a watch sent an object twice"
    assert not [name for name in watch.names if name.startswith("ERROR")]
    _one_leads(hubs[1])
    watch.stopped.set()
    with contextlib.closing(client_of(hubs[1])) as client:
        # One more event, for the watch to see that it may stop.
        client.post(f"{hubs[1].url}/clusters/root{CONFIG_MAPS}", _config_map("last"))
    watch.join()


def _await_writes(writers: list[Writer], more: int) -> None:
    """Wait until *more* pairs were written than now."""
    wanted = sum(len(writer.acknowledged) for writer in writers) + more
    deadline = time.monotonic() + 60
    while sum(len(writer.acknowledged) for writer in writers) < wanted:
        assert time.monotonic() < deadline, [w.failures for w in writers]
        time.sleep(0.01)


def _one_leads(hub: Hub) -> None:
    """Whoever led may have died; a survivor takes the controllers over."""
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/skerry-hub-controllers"
    seen = asked(hub, f"/clusters/root{path}")["metadata"]["resourceVersion"]
    deadline = time.monotonic() + 60
    while asked(hub, f"/clusters/root{path}")["metadata"]["resourceVersion"] == seen:
        assert time.monotonic() < deadline, "nobody renews the lease"
        time.sleep(0.05)


def test_what_one_hub_wrote_another_reads_once_the_revision_is_known(hubs: list[Hub]) -> None:
    clients = [client_of(hub) for hub in hubs]
    for turn in range(12):
        here, there = turn % 3, (turn + 1) % 3
        name = f"seen-{turn}"
        made = clients[here].post(f"{hubs[here].url}/clusters/root{WORKSPACES}", _workspace(name))
        version = made["metadata"]["resourceVersion"]
        # In the new workspace at once, through a hub that did not make it.
        listed = clients[there].get(
            f"{hubs[there].url}/clusters/root:{name}{CONFIG_MAPS}?resourceVersion={version}"
        )
        assert [item["metadata"]["name"] for item in listed["items"]] == ["kube-root-ca.crt"]
        seen = clients[there].get(
            f"{hubs[there].url}/clusters/root{WORKSPACES}/{name}?resourceVersion={version}"
        )
        assert seen["spec"]["cluster"] == made["spec"]["cluster"]
    for client in clients:
        client.close()
