"""Much deleted at once, churn, and objects that are somebody else's: two real embedded edges."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kit.e2e.until import until
from tests.kit.e2e.walkthrough import Terminal

pytestmark = pytest.mark.long

_EDGES = ("north", "south")
_SETUP = """
skerry up --init --detach --data-dir hub --port 0
"""
_INVENTORY = """
kubectl ws root
kubectl ws create inventory --enter
skerry edge join north env=prod
skerry edge join south env=prod
skerry edge kubeconfig north > north.kubeconfig
skerry edge kubeconfig south > south.kubeconfig
"""
_WORKLOAD = """
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
# So many that deleting all but a few is more than half, and more than fifty.
_PAGES = 80
_PLACEMENT = {
    "apiVersion": "edge.kcp.io/v1alpha1",
    "kind": "EdgePlacement",
    "metadata": {"name": "all"},
    "spec": {
        "locationSelectors": [{"matchLabels": {"env": "prod"}}],
        "namespaceSelector": {"matchLabels": {"goes": "out"}},
    },
}
_NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "web", "labels": {"goes": "out"}},
}


def page(number: int, text: str = "ours") -> dict[str, Any]:
    metadata = {"name": f"page-{number:02}", "namespace": "web"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def applied(*objects: dict[str, Any]) -> str:
    """Return a command; kubectl itself is not to read the schemas anew for every object."""
    return f"kubectl apply --validate=false -f - <<'EOF'\n{manifest(*objects)}\nEOF"


def deleted(*objects: dict[str, Any]) -> str:
    """Return a command; by name, or with a wait for each, kubectl deletes five in a second."""
    return f"kubectl delete --wait=false -f - <<'EOF'\n{manifest(*objects)}\nEOF"


def manifest(*objects: dict[str, Any]) -> str:
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A hub with controllers and two embedded edges; the current workspace is a tenant's."""
    folder = tmp_path_factory.mktemp("holds")
    here = Terminal(folder)
    try:
        here.export(KUBECONFIG=str(folder / "hub" / "admin.kubeconfig"))
        here.afterwards("skerry down --data-dir hub")
        here(_SETUP)
        for edge in _EDGES:
            here.afterwards(f"skerry edge delete {edge}")
        here(_INVENTORY)
        here(_WORKLOAD)
        here(applied(_NAMESPACE, _PLACEMENT, *map(page, range(_PAGES))))
        for edge in _EDGES:
            at_edge(here, edge, lambda names: len(names) == _PAGES)
        yield here
    finally:
        here.close()


def at_edge(shell: Terminal, edge: str, holds: Callable[[set[str]], bool], text: str = "") -> None:
    """Wait until *holds* is true of the pages at an edge, or of those that say *text*."""

    def pages(found: Any) -> bool:
        said = [item for item in found["items"] if (item.get("data") or {}).get("text")]
        return holds(
            {item["metadata"]["name"] for item in said if text in ("", item["data"]["text"])}
        )

    until(shell, f"kubectl --kubeconfig {edge}.kubeconfig -n web get configmaps -o json", pages)


def kubectl_in(workspace: str) -> str:
    """Return kubectl for a workspace that is not the current one."""
    server = "$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}')"
    return f"base={server}; kubectl --server ${{base%/clusters/*}}/clusters/{workspace}"


def condition(
    shell: Terminal, workspace: str, what: str, kind: str, status: str, words: str = ""
) -> Any:
    """Wait for a condition of an object; return it."""
    found: list[Any] = []

    def says(obj: Any) -> bool:
        conditions = (obj.get("status") or {}).get("conditions") or []
        found[:] = [each for each in conditions if each["type"] == kind]
        return bool(found) and found[0]["status"] == status and words in found[0]["message"]

    until(shell, f"{kubectl_in(workspace)} get {what} -o json", says)
    return found[0]


def announced(shell: Terminal, workspace: str, wanted: set[tuple[str, str]]) -> None:
    """Wait for Events, each by the name of what it is about and its reason."""

    def said(found: Any) -> bool:
        items = found["items"]
        return wanted <= {(item["involvedObject"]["name"], item["reason"]) for item in items}

    until(shell, f"{kubectl_in(workspace)} get events -A -o json", said)


def failing(shell: Terminal, command: str) -> tuple[int, str]:
    """Return exit code and what was printed by a command that has nothing to read."""
    done = shell(f"set +e; {command} </dev/null 2>&1; echo $?").strip().splitlines()
    return int(done[-1]), "\n".join(done[:-1])


def test_churn_converges_without_a_hold(terminal: Terminal) -> None:
    for text in ("once", "twice"):
        some = [page(number, text) for number in range(40, _PAGES)]
        terminal(deleted(*some))
        terminal(applied(*some))
    for edge in _EDGES:
        # By what they say: before, there were as many of the same names.
        at_edge(terminal, edge, lambda names: len(names) == _PAGES - 40, text="twice")
        at_edge(terminal, edge, lambda names: len(names) == _PAGES)
        condition(terminal, "root:inventory", f"synctarget/{edge}", "Held", "False")


def test_most_deleted_at_once_is_held_said_everywhere_and_goes_when_approved(
    terminal: Terminal,
) -> None:
    code, said = failing(terminal, "skerry edge approve-deletions north --yes")
    assert (code, said) == (6, "skerry edge approve-deletions: edge north holds no deletions")
    terminal(deleted(*map(page, range(5, _PAGES))))
    for edge in _EDGES:
        # An approval is for what is shown: first it has to have heard of everything.
        heard = f"{kubectl_in('root:inventory')} get synctarget/{edge} -o json"
        until(terminal, heard, lambda found: found["status"]["objects"]["wanted"] == 6)
        command = f"skerry edge approve-deletions {edge}"
        held = condition(terminal, "root:inventory", f"synctarget/{edge}", "Held", "True", command)
        assert held["reason"] == "DeletionsHeld"
        condition(terminal, "root:inventory", f"location/{edge}", "Held", "True", command)
        placed = condition(terminal, "root:shop", "edgeplacement/all", "Held", "True", command)
        assert placed["reason"] == "DeletionsHeld"
        # No more than the budget of fifty may be gone.
        at_edge(terminal, edge, lambda names: len(names) >= _PAGES - 50)
    announced(terminal, "root:inventory", {(edge, "DeletionsHeld") for edge in _EDGES})
    announced(terminal, "root:shop", {("all", "DeletionsHeld")})
    condition(terminal, "root:shop", "edgeplacement/all", "Ready", "False", "deletions are held")
    fleet = json.loads(terminal("skerry fleet -o json"))
    assert {edge["state"] for edge in fleet["edges"]} == {"Held"}

    code, said = failing(terminal, "skerry edge approve-deletions north")
    assert code == 1
    assert "configmaps/web/page-" in said
    assert "add --yes" in said
    code, said = failing(terminal, "skerry edge approve-deletions north --id 0123456789 --yes")
    assert code == 6
    assert "look at it again" in said
    done = json.loads(terminal("skerry edge approve-deletions north --yes -o json 2>/dev/null"))
    assert done["approved"] is True
    at_edge(terminal, "north", lambda names: len(names) == 5)
    condition(terminal, "root:inventory", "synctarget/north", "Held", "False")
    condition(terminal, "root:inventory", "synctarget/south", "Held", "True")
    terminal("skerry edge approve-deletions south --yes")
    at_edge(terminal, "south", lambda names: len(names) == 5)
    condition(terminal, "root:inventory", "location/south", "Held", "False")
    condition(terminal, "root:shop", "edgeplacement/all", "Ready", "True")


def test_what_is_somebody_elses_is_refused_by_name_and_adopted_by_command(
    terminal: Terminal,
) -> None:
    edge = "kubectl --kubeconfig north.kubeconfig"
    theirs = json.dumps(page(99, "theirs"))
    terminal(f"{edge} create -f - <<'EOF'\n{theirs}\nEOF")
    terminal(applied(page(99)))
    adopting = "skerry edge adopt north configmaps/page-99 -n web"
    refused = condition(
        terminal, "root:inventory", "synctarget/north", "ObjectsRefused", "True", adopting
    )
    assert refused["reason"] == "NotOurs"
    code, said = failing(terminal, "skerry edge adopt south configmaps/page-99 -n web")
    assert code == 6
    assert "nothing to adopt" in said
    assert "of workspace root:shop" in terminal(adopting)
    mine = f"{edge} -n web get configmap page-99 -o json"
    until(terminal, mine, lambda found: found["data"]["text"] == "ours")
    condition(terminal, "root:inventory", "synctarget/north", "ObjectsRefused", "False")


def test_what_cannot_be_decided_is_a_sentence_and_an_exit_code(terminal: Terminal) -> None:
    for command in ("approve-deletions nowhere", "accept-store nowhere", "adopt nowhere cm/a -n w"):
        code, said = failing(terminal, f"skerry edge {command}")
        assert code == 5
        assert "no workspace has a SyncTarget 'nowhere'" in said
    code, said = failing(terminal, "skerry edge accept-store north --yes")
    assert (code, said) == (6, "skerry edge accept-store: edge north knows the store of this hub")
    code, said = failing(terminal, "skerry edge adopt north configmaps/nothing -n web")
    assert code == 5
    assert "is not placed at edge north" in said
    code, said = failing(terminal, "skerry edge adopt north page-99 -n web")
    assert code == 2
    assert "want KIND/NAME" in said
    code, said = failing(terminal, "skerry edge adopt north configmaps/page-99")
    assert code == 2
    assert "-n NAMESPACE" in said
    code, said = failing(terminal, "skerry edge approve-deletions north --imw root:nowhere")
    assert code == 5
    assert "root:nowhere" in said
