"""The fifth stage: reported states come back to the workloads' workspaces as summaries.

Mailbox controller, edge scheduler and summarizer run as processes. Whatever translator and syncer
do is done here by hand, through kubectl, so that each state can be stopped at.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skerry.api.edge import APPLIED, HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.syncing.delivery import content_mark
from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.summaries import Raw, binding, edge, manifests
from tests.kit.e2e.until import until

pytestmark = pytest.mark.long

MakeShell = Callable[..., Shell]
SKERRY = Path(sys.executable).with_name("skerry")
CONTROLLERS = ("mailbox", "edge-scheduler", "summarizer", "status-queries")


KUBERNETES = binding("bind-kubernetes", "root:compute", "kubernetes")


def workload(kind: str, **labels: str) -> list[Raw]:
    """A namespace with a Deployment, and the placement that sends it to Locations so labelled."""
    space, name, own = f"{kind}stuff", f"{kind}d", {"app": kind}
    container = {"name": "httpd", "image": "registry.example/httpd:2.4"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": space, "labels": {kind: "si"}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"namespace": space, "name": name},
            "spec": {
                "selector": {"matchLabels": own},
                "template": {"metadata": {"labels": own}, "spec": {"containers": [container]}},
            },
        },
        {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "EdgePlacement",
            "metadata": {"name": f"edge-placement-{kind[0]}"},
            "spec": {
                "locationSelectors": [{"matchLabels": {"env": "prod", **labels}}],
                "namespaceSelector": {"matchLabels": {kind: "si"}},
                "wantSingletonReportedState": True,
            },
        },
    ]


@pytest.fixture
def controllers(hub: Hub) -> Iterator[None]:
    """The controllers as one process, which stops politely in the end."""
    only = [word for name in CONTROLLERS for word in ("--only", name)]
    with (hub.directory / "controllers.log").open("w") as log:
        process = subprocess.Popen(
            [str(SKERRY), "controllers", *only, "--espw-path", "root:espw",
             "--kubeconfig", str(hub.kubeconfig), "--server-bind-address", "127.0.0.1:0"],
            stdout=log, stderr=log,
        )  # fmt: skip
    yield
    process.terminate()
    assert process.wait(timeout=60) == 0, (hub.directory / "controllers.log").read_text()


def mailboxes(shell: Shell) -> dict[str, str]:
    """Return the mailbox workspaces by the names of their SyncTargets."""
    shell("kubectl ws root:espw")
    found = until(shell, "kubectl get workspaces -o json", lambda them: len(them["items"]) == 2)
    note = "edge.kcp.io/sync-target-name"
    return {w["metadata"]["annotations"][note]: w["metadata"]["name"] for w in found["items"]}


def deliver(shell: Shell, mailbox: str, kind: str, available: int) -> None:
    """Do as translator and syncer would: copy, apply, report."""
    space, deployment, _ = workload(kind)
    projected = {"edge.kcp.io/projected": "yes"}
    space["metadata"]["labels"] = projected
    deployment["metadata"]["labels"] = projected
    shell(f"kubectl ws root:espw:{mailbox}")
    shell(manifests(KUBERNETES, heartbeat(3600)))
    # Created, not applied: kubectl's notes on the object are content, and ours would differ.
    shell(manifests(space, deployment, verb="create"))
    get = f"kubectl -n {kind}stuff get deployment {kind}d -o json"
    mark = content_mark(json.loads(shell(get)))
    shell(f"kubectl -n {kind}stuff annotate deployment {kind}d {APPLIED}={mark}")
    status = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": available}
    patch = json.dumps({"status": status})
    shell(
        f"kubectl -n {kind}stuff patch deployment {kind}d --subresource=status "
        f"--type=merge -p '{patch}'"
    )


def heartbeat(seconds: int) -> Raw:
    """The Lease by which an edge shows that it lives; the hub writes the times."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": HEARTBEAT_LEASE, "namespace": HEARTBEAT_NAMESPACE},
        "spec": {
            "holderIdentity": "by-hand",
            "leaseDurationSeconds": seconds,
            "renewTime": rfc3339_micro(datetime.now(UTC)),
        },
    }


def ask_the_fleet(shell: Shell) -> None:
    """Ask once and for all: the answers agree, and what is asked once does not stay."""
    ask = "skerry query deploy -n commonstuff --by where=location.name"
    total = "--agg available=sum:status.availableReplicas"
    printed = [line.split() for line in shell(f"{ask} {total}").splitlines()]
    assert printed == [["WHERE", "AVAILABLE"], ["florin", "1"], ["guilder", "0"]]
    query = {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "StatusQuery",
        "metadata": {"name": "unhealthy"},
        "spec": {
            "from": {"apiGroup": "apps", "resources": ["deployments"]},
            "filter": "report.healthy != 'True'",
            "select": [{"name": "where", "value": "location.name"}],
        },
    }
    shell(manifests(query))
    get = "kubectl get sq unhealthy -o json"
    rows = [{"values": ["guilder"]}]
    found = until(shell, get, lambda found: found.get("status", {}).get("rows") == rows)
    assert found["status"]["matched"] == 1
    assert shell("kubectl get sq -o name").split() == ["statusquery.edge.kcp.io/unhealthy"]
    piped = f"skerry query -f - -o csv <<'EOF'\n{json.dumps(query)}\nEOF"
    assert shell(piped).splitlines() == ["where", "guilder"]
    refused = shell("skerry query deploy --filter '1 +'", code=1)
    assert "spec.filter" in refused
    assert "nothings" in shell("skerry query nothings.example.io", code=1)


@pytest.mark.usefixtures("controllers")
def test_stage_five_summaries_come_back(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws root; kubectl ws create imw-1 --enter")
    shell(manifests(*edge("florin"), *edge("guilder", extended="si")))
    shell("kubectl delete location default")
    shell("kubectl ws root; kubectl ws create my-org --enter")
    for kind, labels in (("common", {}), ("special", {"extended": "si"})):
        shell(f"kubectl ws root:my-org; kubectl ws create wmw-{kind[0]} --enter")
        shell(manifests(binding("bind-espw", "root:espw", "edge.kcp.io"), KUBERNETES))
        shell(manifests(*workload(kind, **labels), verb="create"))
    boxes = mailboxes(shell)
    deliver(shell, boxes["florin"], "common", 1)
    deliver(shell, boxes["guilder"], "common", 0)
    deliver(shell, boxes["guilder"], "special", 1)

    shell("kubectl ws root:my-org:wmw-s")
    get = "kubectl -n specialstuff get statussummary edge-placement-s-deployments-speciald -o json"
    special = until(shell, get, lambda found: found["healthy"] == 1)
    assert (special["destinations"], special["delivered"], special["reported"]) == (1, 1, 1)
    source = "kubectl -n specialstuff get deployment speciald -o json"
    until(shell, source, lambda found: found.get("status", {}).get("availableReplicas") == 1)

    shell("kubectl ws root:my-org:wmw-c")
    get = "kubectl -n commonstuff get statussummary edge-placement-c-deployments-commond -o json"
    common = until(shell, get, lambda found: found["reported"] == 2)
    assert (common["destinations"], common["delivered"], common["healthy"]) == (2, 2, 1)
    assert [each["location"] for each in common["details"]] == ["guilder", "florin"]
    table = shell("kubectl get ss -A").splitlines()
    assert table[0].split() == [
        "NAMESPACE", "NAME", "KIND", "OBJECT", "DESTINATIONS", "DELIVERED", "HEALTHY", "UNHEALTHY",
        "UNKNOWN", "AGE",
    ]  # fmt: skip
    assert table[1].split()[2:9] == ["Deployment", "commond", "2", "2", "1", "1", "0"]

    shell(f"kubectl ws root:espw:{boxes['guilder']}")
    shell(manifests(heartbeat(5)))
    shell("kubectl ws root:my-org:wmw-c")
    lost = until(shell, get, lambda found: found["unknown"] == 1)
    counted = ("destinations", "delivered", "healthy", "unhealthy")
    assert [lost[name] for name in counted] == [2, 1, 1, 0]
    (unheard,) = (each for each in lost["details"] if each["location"] == "guilder")
    assert unheard["reason"] == "LeaseLapsed"
    assert unheard["message"] == f"last heard of {unheard['lastHeard']}"
    shell(f"kubectl ws root:espw:{boxes['guilder']}")
    shell(manifests(heartbeat(3600)))
    shell("kubectl ws root:my-org:wmw-c")
    until(shell, get, lambda found: found["unknown"] == 0 and found["unhealthy"] == 1)

    explain = "skerry explain placement edge-placement-c --object deployment/commonstuff/commond"
    found = json.loads(shell(f"{explain} -o json"))
    outcomes = {each["location"]: each["outcome"] for each in found["pairs"]}
    assert outcomes == {"florin": "Healthy", "guilder": "Unavailable"}
    assert "health: Unavailable" in shell(f"{explain} --location guilder")

    ask_the_fleet(shell)

    change = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "commonstuff", "labels": {"common": None}},
    }
    printed = shell(f"skerry whatif -f - <<'EOF'\n{json.dumps(change)}\nEOF")
    assert "  - object deployments.apps commonstuff/commond" in printed.splitlines()
    refused = shell("skerry explain placement nothing", code=1)
    assert "there is no EdgePlacement 'nothing' in root:my-org:wmw-c" in refused

    shell("kubectl delete edgeplacement edge-placement-c")
    everything = "kubectl -n commonstuff get statussummaries -o json"
    until(shell, everything, lambda found: not found["items"])
