"""One bad image and twenty edges: the canary fails, everything returns, the history tells it.

A hub, each of its controllers and the edges are processes; the edges' servers and syncers are real
and share one, and only their nodes are played.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.foreign_hub import ForeignHub, OurHub, hub_for
from tests.kit.e2e.hubs import Shell
from tests.kit.e2e.processes import refuse_old_kubectl
from tests.kit.e2e.summaries import edge, manifests
from tests.kit.e2e.two_tenants import SKERRY, eventually

pytestmark = pytest.mark.long

Raw = dict[str, Any]
ROOT = Path(__file__).parents[3]
BROKEN = "no-such-image"
CONTROLLERS = (
    "status-queries",
    "mailbox",
    "placement-translator",
    "history",
    "edge-scheduler",
    "summarizer",
)
# A wave passes when a query says that the canary serves another image than the first.
CHECK = {"query": "web", "holds": "rows.exists(r, r.where == 'e1' && r.image != 'web:1')"}


def workload(image: str, deadline: str) -> list[Raw]:
    """A Deployment, where it goes, how, and where it serves."""
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "w", "image": image}]}}
    kind = {"apiVersion": "edge.kcp.io/v1alpha1", "metadata": {"name": "web"}}
    canary = {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "shop", "labels": {"goes": "out"}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": labels}, "template": pod},
        },
        {
            **kind,
            "kind": "Rollout",
            "spec": {
                "settle": {"quiet": "500ms"},
                "waves": [canary],
                "pace": {"concurrency": "100%", "maxUnavailable": "100%"},
                "judge": {"minReady": "500ms", "deadline": deadline},
                "offline": {"after": "1s"},
            },
        },
        {
            **kind,
            "kind": "StatusQuery",
            "spec": {
                "from": {"apiGroup": "apps", "resources": ["deployments"]},
                "filter": "report.healthy == 'True'",
                "select": [
                    {"name": "where", "value": "location.name"},
                    {"name": "image", "value": "obj.spec.template.spec.containers[0].image"},
                ],
            },
        },
        {
            **kind,
            "kind": "EdgePlacement",
            "spec": {
                "locationSelectors": [{"matchLabels": {"env": "prod"}}],
                "namespaceSelector": {"matchLabels": {"goes": "out"}},
            },
        },
    ]


class Edges:
    """The process of the edges."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def say(self, line: str) -> None:
        """Have the edges do something, and wait until they have."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if line:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == (line or "ready")

    def ran(self) -> set[tuple[str, ...]]:
        """Return every edge and image that was ever run there."""
        log = self._folder / "ran"
        return (
            {tuple(line.split()) for line in log.read_text().splitlines()}
            if log.exists()
            else set()
        )

    def running(self, image: str) -> set[str]:
        return {name for name, ran in self.ran() if ran == image}


@contextmanager
def running_edges(hub: OurHub | ForeignHub, folder: Path) -> Iterator[Edges]:
    folder.mkdir()
    command = [sys.executable, "-m", "tests.kit.e2e.many_edges"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, str(hub.kubeconfig), str(folder), *hub.edges],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with process:
        yield Edges(process, folder)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 0, (folder / "log").read_text()


class Controllers:
    """The controllers, each a process of its own."""

    def __init__(self, hub: OurHub | ForeignHub, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        where = ("--espw-path", "root:espw", "--kubeconfig", str(hub.kubeconfig))
        self._command = [SKERRY, "controllers", *where, "--no-leader-elect"]
        self._command += ["--server-bind-address", "127.0.0.1:0"]
        self._processes = {name: self._started(name) for name in CONTROLLERS}

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        with (self._folder / name).open("ab") as log:
            return subprocess.Popen([*self._command, "--only", name], stdout=log, stderr=log)

    def _starts(self, name: str) -> int:
        return (self._folder / name).read_text().count('"starting workers"')

    def kill(self, name: str) -> None:
        """End one as a power switch would, and start it again; returns when it works.

        That of history has no workers that it could log: it looks at everything every so often.
        """
        before = self._starts(name)
        self._processes[name].kill()
        self._processes[name].wait(timeout=60)
        self._processes[name] = self._started(name)
        eventually(lambda: self._starts(name) > before or not before, wanted=True)

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for name, process in self._processes.items():
            assert process.wait(timeout=60) == 0, (self._folder / name).read_text()


class Shop:
    """Somebody at the workspace of the workload."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        shell("kubectl ws root:shop")

    def __call__(self, script: str) -> str:
        return self._shell(script)

    def rolled(self, **wanted: Any) -> None:
        """Wait until the Rollout's status says all of this."""

        def status() -> Raw:
            found = json.loads(self("kubectl get rollout web -o json")).get("status") or {}
            flat = {**(found.get("counts") or {}), **found}
            return {key: flat.get(key) for key in wanted}

        eventually(status, wanted=wanted)

    def serving(self) -> set[str]:
        """Return where the StatusQuery says that the workload serves."""
        found = json.loads(self("kubectl get statusquery web -o json")).get("status") or {}
        return {each["values"][0] for each in found.get("rows") or ()}

    def story(self) -> list[tuple[str, int, str, str]]:
        """Return what was decided by the history: change, count, revisions, and why."""
        lines = self("skerry history placement web").splitlines()
        cells = ([cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[1:])
        decided = (each for each in cells if each[1] in ("Joined", "Revised", "Left"))
        return [(each[1], int(each[2]), each[3], each[4]) for each in decided]

    def revisions(self) -> dict[str, int]:
        piece = json.loads(self("kubectl get singleplacementslice web -o json"))
        return {e["locationName"]: e["revision"] for e in piece["destinations"]}


def test_a_bad_image_stays_with_the_canary_and_edges_that_are_away_delay_nothing(
    tmp_path: Path,
) -> None:
    refuse_old_kubectl()
    hub = hub_for(tmp_path)
    (tmp_path / "home").mkdir()
    with ExitStack() as stack:
        hub.start()
        stack.callback(hub.stop)
        shell = Shell(hub.kubeconfig, tmp_path / "home", ROOT)
        controllers = Controllers(hub, tmp_path / "controllers")
        stack.callback(controllers.stop)
        names, away = list(hub.edges), hub.edges[-len(hub.edges) // 4 :]
        rings = {name: "canary" if name == "e1" else "rest" for name in names}
        inventory = [each for name in names for each in edge(name, ring=rings[name])]
        stack.callback(hub.clean)
        hub.install(shell)
        shell(f"kubectl ws root:imw >/dev/null\n{manifests(*inventory)}")
        edges = stack.enter_context(running_edges(hub, tmp_path / "edges"))
        shop = Shop(shell)
        shop(manifests(*workload("web:1", hub.deadline)))
        edges.say("")
        shop.rolled(phase="Completed", stable=1, destinations=len(names))
        eventually(lambda: edges.running("web:1"), wanted=set(names))
        eventually(shop.serving, wanted=set(names))

        # A quarter goes away, and a good change neither waits for them nor fails. Whoever answers
        # the query that its waves wait for is killed, as is who carries it out.
        edges.say(f"offline {' '.join(away)}")
        shop.rolled(absent=len(away))
        patch = json.dumps({"spec": {"judge": {"checks": [CHECK]}}})
        shop(f"kubectl patch rollout web --type merge -p {shlex.quote(patch)}")
        shop("kubectl -n shop set image deployment/web w=web:2")
        for name in CONTROLLERS[:4]:
            controllers.kill(name)
        shop.rolled(phase="Completed", stable=2)
        eventually(lambda: edges.running("web:2"), wanted=set(names) - set(away))

        # A bad one stays with the canary, also when who decides and who judges is killed meanwhile.
        shop(f"kubectl -n shop set image deployment/web w={BROKEN}")
        eventually(lambda: edges.running(BROKEN), wanted={"e1"})
        for name in (*CONTROLLERS[4:], "status-queries"):
            controllers.kill(name)
        shop.rolled(phase="RolledBack", target=3, stable=2)
        assert shop.revisions()["e1"] == 2
        verdicts = shop("kubectl get placementrevisions -o jsonpath='{.items[*].status.verdict}'")
        assert verdicts.split() == ["Good", "Good", "Bad"]
        story = shop.story()
        # An edge that is not heard of for a moment is a line of its own; most often there are six.
        moved = {move: sum(n for _, n, each, _ in story if each == move) for _, _, move, _ in story}
        assert (moved["\N{EN DASH}→1"], moved["2→3"], moved["3→2"]) == (len(names), 1, 1)
        [back] = [why for _, _, move, why in story if move == "3→2"]
        assert back.startswith("rollback: 1 of 1 destinations are bad: e1: deployments shop/web")

        # Who was away follows, and never ran it.
        edges.say(f"online {' '.join(away)}")
        eventually(lambda: edges.running("web:2"), wanted=set(names))
        assert edges.running(BROKEN) == {"e1"}
        eventually(shop.serving, wanted=set(names))
        eventually(lambda: set(shop.revisions().values()), wanted={2})
