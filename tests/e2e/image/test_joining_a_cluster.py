"""The page about joining a real cluster, its commands run as they are printed.

The cluster is an API server with workload controllers and RBAC. Its node is this test: it runs the
pod of the manifest under crun, with the image of the Containerfile, as the manifest's account.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.processes import Kubectl, ServerProcess
from tests.kit.e2e.walkthrough import Terminal
from tests.kit.image.building import Image
from tests.kit.image.ours import CONTAINERFILE, ROOT
from tests.kit.image.pods import PodProcess
from tests.kit.ports import free_ports

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "how-to" / "join-a-cluster.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
INVENTORY, APPROVAL, WORKLOAD, FORBIDDEN, RIGHTS, ARRIVAL = range(6)
# Of these kinds the story has objects.
TOUCHED = {"configmaps", "deployments", "namespaces", "customresourcedefinitions"}
# Rights that this story has no occasion to use: nothing is taken away from the namespaces' names.
UNUSED = {("get", "customresourcedefinitions"), ("delete", "namespaces")}


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCK.findall(PAGE.read_text()) if name == kind]


def with_helm(block: str, number: int) -> str:
    """Return a block with its last line as the page has it for Helm."""
    return "".join(block.splitlines(keepends=True)[:-1]) + blocks("helm")[number]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ServerProcess]:
    flags = ("--controllers", "all", "--audit-log", str(tmp_path / "audit.log"))
    process = ServerProcess(tmp_path / "cluster", *flags)
    process.start()
    yield process
    process.kill()


@pytest.fixture
def terminal(tmp_path: Path, cluster: ServerProcess) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path / "terminal")
    (terminal.folder / "florin.kubeconfig").write_bytes(cluster.kubeconfig.read_bytes())
    (terminal.folder / "deploy").symlink_to(ROOT / "deploy")
    terminal.export(KUBECONFIG=str(terminal.folder / ".skerry" / "admin.kubeconfig"))
    terminal(f"skerry up --init --detach --port {free_ports(1)[0]}")
    yield terminal
    terminal("skerry down")


def syncer_pod(kubectl: Kubectl) -> dict[str, Any]:
    """Return the pod that the Deployment's controllers have made."""
    kubectl.until("kubestellar-syncer-", "get", "pods", "--all-namespaces", "-o", "name")
    (pod,) = kubectl.json("get", "pods", "--all-namespaces")["items"]
    assert isinstance(pod, dict)
    return pod


def granted(kubectl: Kubectl) -> set[tuple[str, str]]:
    """Return verb and resource of every rule that the manifests have given the syncer."""
    roles = kubectl.json("get", "clusterroles,roles", "--all-namespaces")["items"]
    name = _account(kubectl).rpartition(":")[2]
    return {
        (verb, resource)
        for role in roles
        if role["metadata"]["name"] in (name, f"{name}-placed")
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule.get("resources", ())
    }


def asked(audit: Path, account: str) -> list[tuple[str, str, int]]:
    """Return verb, resource and the answer's code of each request that the account made."""
    found = []
    for line in audit.read_text().splitlines():
        event = json.loads(line)
        reference = event.get("objectRef")
        if event["user"]["username"] == account and reference:
            found.append((event["verb"], reference["resource"], event["responseStatus"]["code"]))
    return found


def needed(requests: list[tuple[str, str, int]]) -> set[tuple[str, str]]:
    """Return the rights that requests take, whether they were had or not."""
    pairs = {(verb, resource) for verb, resource, _ in requests}
    # An apply that makes the object takes both verbs. Elsewhere a watch begins with a list.
    pairs |= {("create", resource) for verb, resource, code in requests if code == 201}
    return pairs | {("list", resource) for verb, resource, _ in requests if verb == "watch"}


@pytest.mark.parametrize("helm", [False, True], ids=["kubectl", "helm"])
def test_a_cluster_joins_as_the_page_says_with_exactly_the_rights_it_needs(
    image: Image, cluster: ServerProcess, terminal: Terminal, tmp_path: Path, helm: bool
) -> None:
    shell = blocks("shell")
    edge, audit = Kubectl(cluster.kubeconfig, tmp_path), tmp_path / "audit.log"
    terminal(with_helm(shell[INVENTORY], 0) if helm else shell[INVENTORY])
    pod = PodProcess(image, edge, tmp_path / "node", syncer_pod(edge))
    pod.start()
    try:
        terminal(shell[APPROVAL])
        terminal(shell[WORKLOAD])
        terminal(shell[FORBIDDEN])
        # Of one kind it may be known earlier than of the other.
        named = shell[FORBIDDEN].replace("must allow", "must allow.*deployments")
        terminal(named)
        terminal(with_helm(shell[RIGHTS], 1) if helm else shell[RIGHTS])
        terminal(shell[ARRIVAL])
        before = len(asked(audit, _account(edge)))
        # What a day brings: a change, and an end.
        terminal("kubectl -n shop create configmap page --from-literal=index.html=bye -o yaml "
                 "--dry-run=client | kubectl apply -f -")  # fmt: skip
        edge.until("bye", "-n", "shop", "get", "configmap", "page", "-o", "yaml")
        terminal("kubectl -n shop delete configmap/page deployment/web")
        terminal("kubectl --kubeconfig florin.kubeconfig -n shop wait --for=delete --timeout=60s "
                 "configmap/page deployment/web")  # fmt: skip
        allowed, account = granted(edge), _account(edge)
    finally:
        code = pod.stop()
    assert code == 0, pod.log.read_text()
    cluster.stop()  # it records a watch when it ends
    requests = asked(audit, account)
    assert 403 not in {code for _, _, code in requests[before:]}, "the rights do not suffice"
    unused = allowed - needed(requests)
    assert {pair for pair in unused if pair[1] in TOUCHED} <= UNUSED


def _account(edge: Kubectl) -> str:
    found = edge.json("get", "deployments", "--all-namespaces")["items"]
    (metadata,) = [o["metadata"] for o in found if o["metadata"]["name"].startswith("kubestellar")]
    return f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}"


def test_the_page_builds_the_image_as_the_containerfile_says() -> None:
    (command,) = [text.strip() for text in blocks("bash")]
    assert command in CONTAINERFILE.read_text()


def test_the_volume_of_the_page_is_one_that_kubernetes_takes(admin: Kubectl) -> None:
    (text,) = blocks("yaml")
    text = re.sub(r"\bNAME\b", "florin", text).replace("NAMESPACE", "tools")
    admin("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)
