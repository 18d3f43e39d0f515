"""An edge that is lost: everybody who asks the hub is answered that nothing is known of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skerry.logic.fleet.summary.content import NO_NUMBER
from tests.kit.e2e.until import until
from tests.kit.e2e.walkthrough import Background, Terminal

pytestmark = pytest.mark.long

_EDGES = ("north", "south")
_HUB = """
skerry up --init --detach --data-dir hub --port 0
kubectl ws root
kubectl ws create inventory --enter
"""
_BINDINGS = """
kubectl ws root
kubectl ws create shop --enter
kubectl apply -f - <<EOF
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: bind-kube}
spec: {reference: {export: {path: "root:compute", name: kubernetes}}}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: bind-espw}
spec: {reference: {export: {path: "root:espw", name: edge.kcp.io}}}
EOF
"""
# Everything of the workspace goes everywhere; a kind without status and one without health, too.
_WORKLOAD = """
kubectl create namespace web
kubectl -n web create configmap page --from-literal=text=ours
kubectl -n web create deployment site --image=busybox -- sleep 9999
kubectl -n web create service clusterip site --tcp=80
kubectl -n web create quota most --hard=pods=50
kubectl apply -f - <<EOF
apiVersion: edge.kcp.io/v1alpha1
kind: EdgePlacement
metadata: {name: all}
spec: {locationSelectors: [{matchLabels: {env: prod}}], namespaceSelector: {}}
EOF
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A hub with controllers and two embedded edges; syncers are started by the test."""
    here = Terminal(tmp_path)
    try:
        here.export(KUBECONFIG=str(tmp_path / "hub" / "admin.kubeconfig"))
        here.afterwards("skerry down --data-dir hub")
        here(_HUB)
        for edge in _EDGES:
            here.afterwards(f"skerry edge delete {edge} || true")
            here(f"KUBECONFIG=edges.kubeconfig skerry edge create {edge}")
            here(f"skerry edge kubeconfig {edge} > {edge}.kubeconfig")
            here(f"kubectl kubestellar ensure location {edge} env=prod")
            here(f"skerry edge bootstrap {edge} --imw root:inventory -o {edge}-hub.kubeconfig")
        yield here
    finally:
        here.close()


def syncer(shell: Terminal, edge: str) -> Background:
    """Start a syncer that is missed after six seconds."""
    return shell.background(
        f"skerry syncer --from-kubeconfig {edge}-hub.kubeconfig "
        f"--to-kubeconfig {edge}.kubeconfig --sync-target-name {edge} "
        f"--data-dir syncer-{edge} --heartbeat-seconds 3"
    )


def conditions(placement: Any) -> dict[str, Any]:
    return {each["type"]: each for each in placement["status"]["conditions"]}


def is_ready(placement: Any) -> bool:
    found = {each["type"]: each for each in (placement.get("status") or {}).get("conditions") or ()}
    return bool(found.get("Ready", {}).get("status") == "True")


def row(shell: Terminal, command: str, name: str) -> tuple[str, list[str]]:
    """Return the header of a table, and the row of *name* without its age."""
    header, *rows = shell(command).splitlines()
    (found,) = (line for line in rows if line.split()[0] == name)
    return " ".join(header.split()), found.split()[:-1]


def announced(events: Any, name: str) -> bool:
    """Tell whether the placement was said to be ready, and to be out of reach."""
    about = (each for each in events["items"] if each["involvedObject"]["name"] == name)
    return {"Ready", "NoneReachable"} <= {each["reason"] for each in about}


def lost(shell: Terminal, edge: str) -> None:
    """Wait until the hub says that nothing is known of *edge*, wherever it is asked."""
    get = "kubectl -n web get ss all-deployments-site -o json"
    summary = until(shell, get, lambda found: found["unknown"] == 1)
    counted = ("destinations", "delivered", "healthy", "unhealthy")
    assert [summary[name] for name in counted] == [2, 1, 1, 0]
    (unheard,) = (each for each in summary["details"] if each["location"] == edge)
    assert (unheard["healthy"], unheard["reason"]) == ("Unknown", "LeaseLapsed")

    get = "kubectl get edgeplacement all -o json"
    placement = until(shell, get, lambda found: found["status"]["unknownDestinations"] == 1)
    found = conditions(placement)
    for kind in ("Delivered", "Healthy", "Ready"):
        assert found[kind]["status"] == "True"
        said = f"1 unknown: {edge} last heard of {unheard['lastHeard']}"
        assert found[kind]["message"].endswith(said)
    explained = shell("skerry explain placement all --object deployment/web/site")
    assert f"{edge} last heard of" in explained


def test_nothing_is_known_of_an_edge_that_is_not_heard_of(terminal: Terminal) -> None:
    north, south = (syncer(terminal, edge) for edge in _EDGES)
    terminal(_BINDINGS)
    terminal(_WORKLOAD)

    # What tools wait for comes true, also where everything of a workspace is placed.
    get = "kubectl get edgeplacement all -o json"
    until(terminal, get, is_ready)
    terminal("kubectl wait --for=condition=Ready edgeplacement/all --timeout=10s")
    assert row(terminal, "kubectl get edgeplacements", "all") == (
        "NAME DESTINATIONS DELIVERED HEALTHY READY AGE",
        ["all", "2", "2", "2", "True"],
    )
    placement = json.loads(terminal("kubectl get epl all -o json"))
    assert placement["status"]["observedGeneration"] == placement["metadata"]["generation"]
    assert conditions(placement)["Held"]["status"] == "False"
    # Placement and summaries are written each at its own pace.
    for name, field in (("deployments-site", "healthy"), ("resourcequotas-most", "delivered")):
        terminal(f"kubectl wait --for=jsonpath='{{.{field}}}'=2 -n web ss/all-{name} --timeout=60s")
    header, shown = row(terminal, "kubectl -n web get ss", "all-deployments-site")
    assert header == ("NAME KIND OBJECT DESTINATIONS DELIVERED HEALTHY UNHEALTHY UNKNOWN AGE")
    assert shown == ["all-deployments-site", "Deployment", "site", "2", "2", "2", "0", "0"]
    _, shown = row(terminal, "kubectl -n web get ss", "all-resourcequotas-most")
    assert shown[3:] == ["2", "2", NO_NUMBER, "0", "0"]

    # Its syncer stops, and nothing else: nobody hears of the edge any more.
    south.interrupt()
    lost(terminal, "south")

    # It comes back, and everything is as it was.
    south = syncer(terminal, "south")
    for path, what in (
        ("{.healthy}", "-n web ss/all-deployments-site"),
        ("{.status.healthyDestinations}", "epl/all"),
    ):
        terminal(f"kubectl wait --for=jsonpath='{path}'=2 {what} --timeout=60s")

    # The edge goes, and its syncer stays: that knows nothing of it either.
    terminal("skerry edge delete south")
    lost(terminal, "south")
    terminal("kubectl ws root:inventory")
    get = "kubectl get synctarget south -o json"
    until(terminal, get, lambda found: conditions(found)["Ready"]["status"] == "False")
    header, shown = row(terminal, "kubectl get synctargets", "south")
    assert header.startswith("NAME READY LAST HEARTBEAT")
    assert shown[1] == "False"

    # With nobody left to hear of, nobody can say whether it is delivered or healthy.
    terminal("kubectl ws root:shop")
    north.interrupt()
    terminal("kubectl wait --for=condition=Ready=unknown edgeplacement/all --timeout=60s")
    found = conditions(json.loads(terminal("kubectl get edgeplacement all -o json")))
    assert {kind: found[kind]["status"] for kind in ("Delivered", "Healthy")} == {
        "Delivered": "Unknown",
        "Healthy": "Unknown",
    }
    # Events follow what they tell of.
    until(terminal, "kubectl get events -o json", lambda found: announced(found, "all"))
