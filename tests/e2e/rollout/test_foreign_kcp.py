"""A kcp takes what a hub of ours refuses: there it is held, said in a condition, or found."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.kit.e2e.foreign_hub import ForeignHub, hub_for
from tests.kit.e2e.hubs import Shell
from tests.kit.e2e.summaries import edge, manifests
from tests.kit.e2e.two_tenants import SKERRY, eventually

Raw = dict[str, Any]
ROOT = Path(__file__).parents[3]
EDGE_API = "edge.kcp.io/v1alpha1"
NAMES = [f"e{number}" for number in range(1, 7)]


def made(kind: str, name: str, spec: Raw) -> Raw:
    return {"apiVersion": EDGE_API, "kind": kind, "metadata": {"name": name}, "spec": spec}


GUARD = made(
    "PlacementGuard",
    "few",
    {"budgets": [{"of": "DestinationsRemoved", "max": 2, "window": "1h"}]},
)
PLACEMENT = made("EdgePlacement", "web", {"locationSelectors": [{"matchLabels": {"env": "prod"}}]})
IMPOSSIBLE = made(
    "Rollout", "web", {"waves": [{"name": "a", "until": "50%"}, {"name": "b", "until": "20%"}]}
)


@contextmanager
def controlled(hub: ForeignHub, folder: Path) -> Iterator[None]:
    where = ("--espw-path", "root:espw", "--kubeconfig", str(hub.kubeconfig))
    command = [SKERRY, "controllers", *where, "--server-bind-address", "127.0.0.1:0"]
    with (folder / "controllers.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        running.terminate()
        running.wait(timeout=60)


def test_a_kcp_refuses_nothing_and_nothing_goes_unasked(tmp_path: Path) -> None:
    hub = hub_for(tmp_path)
    assert isinstance(hub, ForeignHub), "needs the kubeconfig of a kcp: SKERRY_E2E_KCP"
    (tmp_path / "home").mkdir()
    with ExitStack() as stack:
        hub.start()
        stack.callback(hub.stop)
        shell = Shell(hub.kubeconfig, tmp_path / "home", ROOT)
        stack.enter_context(controlled(hub, tmp_path))
        stack.callback(hub.clean)
        hub.install(shell)
        _unasked(shell)


def _unasked(shell: Shell) -> None:
    def at(workspace: str, script: str, *, code: int = 0) -> str:
        return shell(f"kubectl ws {workspace} >/dev/null\n{script}", code=code)

    def shop(kind: str) -> Raw:
        return dict(json.loads(at("root:shop", f"kubectl get {kind} web -o json")))

    def held() -> Raw:
        removals = (shop("edgeplacement").get("status") or {}).get("removals") or {}
        return dict(removals.get("held") or {})

    def reached() -> int:
        found = json.loads(at("root:shop", "kubectl get singleplacementslices -o json"))["items"]
        return sum(len(each.get("destinations") or ()) for each in found)

    at("root:imw", manifests(*(each for name in NAMES for each in edge(name))))
    at("root:shop", manifests(GUARD, PLACEMENT))
    eventually(reached, wanted=6)

    # No request is refused; what exceeds the budget is held, whoever asked for it.
    at("root:imw", f"kubectl label location {' '.join(NAMES[:5])} env=dr --overwrite")
    eventually(lambda: held().get("removed", 0) + 6 - reached(), wanted=5)
    assert reached() >= 4
    at("root:shop", f"kubectl annotate edgeplacement web edge.kcp.io/confirm={held()['name']}")
    eventually(reached, wanted=1)

    # A Rollout that cannot be is taken, says so, and moves nothing.
    at("root:shop", manifests(IMPOSSIBLE))

    def valid() -> list[str]:
        conditions = (shop("rollout").get("status") or {}).get("conditions") or ()
        return [each["status"] for each in conditions if each["type"] == "Valid"]

    eventually(valid, wanted=["False"])

    # Nobody vouches for who did it, and a record that somebody edits is found.
    story = at("root:shop", "skerry history placement web")
    assert "label env=dr by kubectl-label (unverified)" in story
    assert "whole" in at("root:shop", "skerry history verify")
    name = at("root:shop", "kubectl get dr -o name").splitlines()[0]
    at("root:shop", f'kubectl patch {name} --type merge -p \'{{"reason":{{"text":"-"}}}}\'')
    at("root:shop", "skerry history verify", code=3)
