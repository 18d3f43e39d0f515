"""Two independent Python clients, unconfigured, against the real server."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from tests.kit.e2e.manifests import config_map, definition, deployment, pod
from tests.kit.e2e.processes import Kubectl, ServerProcess
from tests.kit.e2e.store import compact

# Half of it is typed and the other half is not: taken as it comes.
client: Any = importlib.import_module("kubernetes.client")
config: Any = importlib.import_module("kubernetes.config")
watch: Any = importlib.import_module("kubernetes.watch")
dynamic_client: Any = importlib.import_module("kubernetes.dynamic")


@pytest.fixture
def official(server: ServerProcess) -> Iterator[Any]:
    """The client the Kubernetes project publishes."""
    with config.new_client_from_config(config_file=str(server.kubeconfig)) as api:
        yield api


def test_the_official_client_reads_and_writes(official: Any, kubectl: Kubectl) -> None:
    core, apps = client.CoreV1Api(official), client.AppsV1Api(official)
    namespace = kubectl.namespace
    made = core.create_namespaced_config_map(namespace, config_map("c", a="1"))
    assert made.metadata.uid
    core.patch_namespaced_config_map("c", namespace, {"data": {"b": "2"}})
    found = core.read_namespaced_config_map("c", namespace)
    assert found.data == {"a": "1", "b": "2"}
    found.data["a"] = "3"
    assert core.replace_namespaced_config_map("c", namespace, found).data["a"] == "3"
    found.metadata.resource_version = made.metadata.resource_version
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_config_map("c", namespace, found)
    assert stale.value.status == 409
    apps.create_namespaced_deployment(namespace, deployment("web", 2))
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 5}})
    assert apps.read_namespaced_deployment_scale("web", namespace).spec.replicas == 5
    assert core.create_namespaced_pod(namespace, pod("solo")).status.phase == "Pending"
    assert core.delete_namespaced_pod("solo", namespace).metadata.name == "solo"
    core.delete_namespaced_config_map("c", namespace)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("c", namespace)
    assert gone.value.status == 404
    assert core.list_namespaced_pod(namespace).items == []


def test_the_official_client_pages_and_watches(official: Any, kubectl: Kubectl) -> None:
    core = client.CoreV1Api(official)
    for n in range(5):
        core.create_namespaced_secret(kubectl.namespace, {"metadata": {"name": f"s{n}"}})
    first = core.list_namespaced_secret(kubectl.namespace, limit=2)
    following = core.list_namespaced_secret(kubectl.namespace, _continue=first.metadata._continue)
    assert [item.metadata.name for item in following.items] == ["s2", "s3", "s4"]
    seen = []
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_secret, kubectl.namespace, timeout_seconds=20, label_selector="!x"
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 5:
            labels = {"metadata": {"labels": {"x": "1"}}}
            core.patch_namespaced_secret("s0", kubectl.namespace, labels)
        if len(seen) == 6:
            stream.stop()
    assert seen == [*(("ADDED", f"s{n}") for n in range(5)), ("DELETED", "s0")]


def test_the_official_dynamic_client_discovers_custom_kinds(
    official: Any, kubectl: Kubectl
) -> None:
    group = "dynamic.example.org"
    extensions = client.ApiextensionsV1Api(official)
    extensions.create_custom_resource_definition(definition(group, "ferries", "Ferry"))
    dynamic = dynamic_client.DynamicClient(official)
    ferries = dynamic.resources.get(api_version=f"{group}/v1", kind="Ferry")
    body = {
        "apiVersion": f"{group}/v1",
        "kind": "Ferry",
        "metadata": {"name": "f"},
        "spec": {"size": 1},
    }
    ferries.create(body=body, namespace=kubectl.namespace)
    applied = dynamic.server_side_apply(
        ferries,
        body={**body, "spec": {"size": 2}},
        namespace=kubectl.namespace,
        field_manager="tests",
        force_conflicts=True,
    )
    assert applied.spec.size == 2
    assert applied.spec.colour == "red"


@pytest.mark.parametrize("story", ["reads_writes_and_waits", "watches_custom_kinds"])
def test_kr8s(story: str, server: ServerProcess, admin: Kubectl) -> None:
    """The other client runs in a process of its own: it leaves connections to the collector."""
    namespace = f"kr8s-{story.replace('_', '-')}"
    admin("create", "namespace", namespace)
    result = subprocess.run(
        [sys.executable, "-m", "tests.e2e.kr8s_program", server.kubeconfig, namespace, story],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr


class Informer:
    """A mirror of the ConfigMaps of a namespace, kept by list and watch in a thread."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        api = config.new_client_from_config(config_file=str(kubeconfig))
        self._core = client.CoreV1Api(api)
        self._namespace = namespace
        self.objects: dict[str, Any] = {}
        self.changes: Queue[tuple[str, str]] = Queue()
        self.relists = 0
        self.problems: list[int] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        version = ""
        while not self._stopped.is_set():
            try:
                if not version:
                    version = self._list()
                version = self._watch(version)
            except ApiException as error:
                self.problems.append(error.status)
                if error.status == 410:
                    version = ""
            except OSError:
                self._stopped.wait(0.05)
            except Exception as error:
                if not type(error).__module__.startswith("urllib3"):
                    raise
                self._stopped.wait(0.05)

    def _list(self) -> str:
        listed = self._core.list_namespaced_config_map(self._namespace)
        self.relists += 1
        self.objects = {item.metadata.name: item for item in listed.items}
        self.changes.put(("LISTED", ""))
        return str(listed.metadata.resource_version)

    def _watch(self, version: str) -> str:
        stream = watch.Watch()
        for event in stream.stream(
            self._core.list_namespaced_config_map,
            self._namespace,
            resource_version=version,
            allow_watch_bookmarks=True,
            timeout_seconds=60,
        ):
            item = event["object"]
            version = item.metadata.resource_version
            if event["type"] == "DELETED":
                self.objects.pop(item.metadata.name, None)
            elif event["type"] in ("ADDED", "MODIFIED"):
                self.objects[item.metadata.name] = item
            if event["type"] != "BOOKMARK":
                self.changes.put((event["type"], item.metadata.name))
            if self._stopped.is_set():
                break
        return version

    def seen(self, kind: str, name: str) -> None:
        """Wait until a change was seen."""
        while self.changes.get(timeout=60) != (kind, name):
            pass

    def stop(self, kubectl: Kubectl) -> None:
        """End the thread and its connections; a watch that waits ends with its next event."""
        self._stopped.set()
        kubectl("create", "configmap", "last")
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()
        self._core.api_client.close()


def test_an_informer_survives_restarts_and_kills(
    own_server: ServerProcess, admin: Kubectl, tmp_path: Path
) -> None:
    kubectl = Kubectl(own_server.kubeconfig, tmp_path, "default")
    informer = Informer(own_server.kubeconfig, "default")
    informer.seen("LISTED", "")
    for number, end in enumerate((own_server.stop, own_server.kill, own_server.kill)):
        kubectl("create", "configmap", f"before-{number}")
        informer.seen("ADDED", f"before-{number}")
        end()
        own_server.start()
        kubectl("create", "configmap", f"after-{number}")
        informer.seen("ADDED", f"after-{number}")
    kubectl("delete", "configmap", "before-0")
    informer.seen("DELETED", "before-0")
    informer.stop(kubectl)
    assert informer.relists == 1
    assert {"after-0", "after-1", "after-2", "before-1"} <= informer.objects.keys()


async def test_an_informer_that_slept_through_a_compaction_lists_again(
    own_server: ServerProcess, admin: Kubectl, tmp_path: Path
) -> None:
    kubectl = Kubectl(own_server.kubeconfig, tmp_path, "default")
    kubectl("create", "configmap", "early")
    informer = Informer(own_server.kubeconfig, "default")
    informer.seen("LISTED", "")
    kubectl("create", "configmap", "witness")
    informer.seen("ADDED", "witness")
    own_server.stop()
    # What happens next, the informer cannot see: the server is somewhere else meanwhile.
    elsewhere = ServerProcess(tmp_path)
    elsewhere.start()
    kubectl("create", "configmap", "meanwhile")
    kubectl("delete", "configmap", "early")
    elsewhere.stop()
    await compact(own_server.data_dir)
    own_server.start()
    informer.seen("LISTED", "")
    informer.stop(kubectl)
    assert 410 in informer.problems
    assert "meanwhile" in informer.objects
    assert "early" not in informer.objects
