"""Who decided that: a hub, its edge scheduler and people, and the story they can print later."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.summaries import binding, edge, manifests
from tests.kit.e2e.two_tenants import SKERRY, eventually

Raw = dict[str, Any]
PLACEMENT: Raw = {
    "apiVersion": "edge.kcp.io/v1alpha1",
    "kind": "EdgePlacement",
    "metadata": {"name": "web"},
    "spec": {"locationSelectors": [{"matchLabels": {"env": "prod"}}]},
}


@contextmanager
def scheduling(hub: Hub, tmp_path: Path) -> Iterator[None]:
    where = ("--espw-path", "root:espw", "--kubeconfig", str(hub.kubeconfig))
    command = [SKERRY, "controllers", *where, "--only", "edge-scheduler"]
    with (tmp_path / "controllers.log").open("wb") as log:
        running = subprocess.Popen(
            [*command, "--server-bind-address", "127.0.0.1:0"], stdout=log, stderr=log
        )
    try:
        yield
    finally:
        running.terminate()
        running.wait(timeout=60)


def test_the_story_of_a_placement_says_who_and_why(
    hub: Hub, shell_at: Callable[[Hub], Shell], tmp_path: Path
) -> None:
    shell = shell_at(hub)
    edge_api = binding("bind-espw", "root:espw", "edge.kcp.io")
    shell("kubectl ws root; kubectl ws create imw\nkubectl ws root; kubectl ws create shop")
    shell(f"kubectl ws root:imw; {manifests(edge_api, *edge('oslo'), *edge('rome'))}")
    shell(f"kubectl ws root:shop; {manifests(edge_api)}\n{manifests(PLACEMENT)}")
    # It finds both Locations at once, and so they join in one record.
    with scheduling(hub, tmp_path):
        _story(shell)


def _story(shell: Shell) -> None:

    def at(workspace: str, script: str, *, code: int = 0) -> str:
        return shell(f"kubectl ws {workspace} >/dev/null\n{script}", code=code)

    def story(*words: str) -> list[list[str]]:
        text = at("root:shop", " ".join(("skerry history placement web", *words)))
        cells = [[cell.strip() for cell in line.split("   ")] for line in text.splitlines()[1:]]
        return [[cell for cell in each[1:] if cell] for each in cells]

    def records() -> int:
        return len(at("root:shop", "kubectl get dr -o name").splitlines())

    joined = [
        "Joined",
        "2",
        "locationSelectors[0] matches",
        "EdgePlacement/web created by kcp-admin",
    ]
    eventually(records, wanted=1)

    # Somebody else takes a shop out of production, and it goes.
    at("root:imw", "kubectl create clusterrolebinding ann --clusterrole cluster-admin --user ann")
    at("root:imw", "kubectl label location oslo env=dr --overwrite --as ann")
    eventually(records, wanted=2)
    left = [
        "Left",
        "1",
        "locationSelectors[0]: env must be prod",
        "Location/oslo label env=dr by ann",
    ]
    at("root:imw", "kubectl delete location rome")
    eventually(records, wanted=3)
    gone = ["Left", "1", "the Location was deleted", "Location/rome deleted"]
    assert story("--since", "1h") == [joined, left, gone]
    assert story("--location", "oslo") == [joined, left]

    # Where it was, and what differs.
    found = at("root:shop", "skerry history export").splitlines()
    first, second, third = map(json.loads, found)
    then = at("root:shop", f"skerry explain placement web --at {first['time']}")
    assert "2 destinations" in then
    assert [line.split()[0] for line in then.splitlines()[3:5]] == ["oslo", "rome"]
    differs = at(
        "root:shop", f"skerry diff placement web --from {first['time']} --to {third['time']}"
    )
    assert [line.split()[:2] for line in differs.splitlines()[2:]] == [
        ["Left", "oslo"],
        ["Left", "rome"],
    ]

    # What nobody can know is not guessed, and nobody writes history.
    assert "is no time" in at("root:shop", "skerry explain placement web --at yesterday", code=2)
    assert "not come yet" in at(
        "root:shop", "skerry explain placement web --at 2999-01-01T00:00:00Z", code=1
    )
    unread = at("root:shop", "skerry history placement web --audit-log none.log 2>&1")
    assert "none.log: No such file or directory: users are as the records have them" in unread
    assert len(unread.splitlines()) == len(story()) + 2
    name = second["metadata"]["name"]
    edit = f'kubectl patch dr {name} --type merge -p \'{{"change":"Joined"}}\''
    assert "never changes" in at("root:shop", edit, code=1)
    at("root:shop", f"kubectl delete dr {name}")
    broken = at("root:shop", "skerry history verify", code=3)
    assert third["metadata"]["name"] in broken
    forged = "kubectl annotate location oslo edge.kcp.io/changed-by=mallory --overwrite"
    at("root:imw", forged)
    said = at("root:imw", "kubectl get location oslo -o json")
    assert (
        json.loads(json.loads(said)["metadata"]["annotations"]["edge.kcp.io/changed-by"])["user"]
        == "ann"
    )
