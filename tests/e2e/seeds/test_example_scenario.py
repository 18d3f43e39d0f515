"""The example scenario of the first quarter of 2023, all five stages, command by command.

The transparent multicluster of stage 4 is our syncers, each with an identity that reaches its own
mailbox only.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from tests.kit.e2e.walkthrough import Background, Terminal
from tests.kit.seeds import blocks, shown
from tests.kit.seeds.likeness import document, missing, said, table

pytestmark = pytest.mark.long

StartHub = Callable[[], Background]
_PATIENCE_SECONDS = 60.0
TARGETS = {"florin": "sync-target-f", "guilder": "sync-target-g"}


@pytest.fixture
def ports() -> dict[int, int]:
    """Return the ports of the scenario, each with the one used: itself, if it is free."""
    used = {}
    with ExitStack() as held:
        for port in (8081, 8082, 8083):
            try:
                found = held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                found = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            used[port] = found.getsockname()[1]
    return used


def published(config: str, ports: dict[int, int]) -> str:
    return re.sub(r"(?<=hostPort: )\d+", lambda found: str(ports[int(found[0])]), config)


def create_edges(terminal: Terminal, ports: dict[int, int]) -> None:
    configs = {"florin": blocks.FLORIN_CONFIG, "guilder": blocks.GUILDER_CONFIG}
    for name, config in configs.items():
        (terminal.folder / f"{name}-config.yaml").write_text(published(config, ports))
        terminal.afterwards(f"skerry edge delete {name}")
    terminal(blocks.CREATE_EDGES)


def make_mailboxes(terminal: Terminal) -> None:
    controller = terminal.background("skerry controllers --only mailbox -v=2")
    controller.until('"Created APIBinding"', times=2)
    controller.interrupt()
    assert missing(shown.STAGE_1_MAILBOX_CONTROLLER, controller.lines) == []


def mailboxes_by_target(terminal: Terminal) -> dict[str, str]:
    """Return the mailbox of each SyncTarget, which the document tells apart by looking."""
    columns = "NAME:.metadata.name,TARGET:.metadata.annotations.edge\\.kcp\\.io/sync-target-name"
    rows = terminal(f"kubectl get workspaces --no-headers -o 'custom-columns={columns}'")
    return {target: name for name, target in map(str.split, rows.splitlines())}


def schedule(terminal: Terminal) -> None:
    assert terminal("kubectl ws root:espw") == 'Current workspace is "root:espw".\n'
    scheduler = terminal.background("skerry controllers --only edge-scheduler")
    result = [
        scheduler.until(f'ated SinglePlacementSlice".* singlePlacementSlice="{name}"')[0]
        for name in ("edge-placement-c", "edge-placement-s")
    ]
    scheduler.interrupt()
    assert missing(shown.STAGE_2_SCHEDULER, scheduler.lines) == []
    for line in result:
        message, values = said(line)
        assert message in ("created SinglePlacementSlice", "updated SinglePlacementSlice")
        assert values["controller"] == "edge-scheduler"
        assert values["workloadWorkspace"] == "<cluster>"
        # Which event came last is a matter of order; whichever it was is named in full.
        named = values["triggeringKind"][0].lower() + values["triggeringKind"][1:]
        assert values["key"] == f"<cluster>|{values[named]}"


def translate(terminal: Terminal) -> None:
    """Have the placement translator do its work; it goes on while another shell explores."""
    assert terminal("kubectl ws root:espw") == 'Current workspace is "root:espw".\n'
    translator = terminal.background("skerry controllers --only placement-translator")
    translator.until("Waiting for caches to sync for placement-translator")
    translator.until(r"deployments.apps \w+\|commonstuff/commond", times=2)
    translator.until(r"deployments.apps \w+\|specialstuff/speciald")
    translator.until('"Created SyncerConfig"', times=2)


def comes(terminal: Terminal, look: str, wanted: str, read: Callable[[str], Any]) -> None:
    """Look until what is printed is what the document shows, which was looked at by people."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (seen := read(terminal(look))) != read(wanted):
        assert time.monotonic() < deadline, seen


def start_syncers(terminal: Terminal) -> None:
    for edge, target in TARGETS.items():
        terminal(f"skerry edge bootstrap {target} --imw root:imw-1 -o {edge}-hub.kubeconfig")
        terminal.background(
            f"skerry syncer --from-kubeconfig {edge}-hub.kubeconfig "
            f"--to-kubeconfig home/.kube/config --to-context kind-{edge} "
            f"--sync-target-name {target} --data-dir .{edge}-syncer"
        )


def wait_for_workloads(terminal: Terminal) -> None:
    for edge, word in (("florin", "common"), ("guilder", "common"), ("guilder", "special")):
        what = f"--context kind-{edge} -n {word}stuff --timeout 50s deployment/{word}d"
        terminal(f"kubectl wait --for=create {what}")
        terminal(f"kubectl wait --for=condition=Available {what}")


def stage_1(terminal: Terminal) -> dict[str, str]:
    printed = terminal.play(blocks.STAGE_1)
    assert printed[1] == "synctarget.workload.kcp.io/sync-target-f created\n"
    assert printed[3] == 'location.scheduling.kcp.io "default" deleted\n'
    assert printed[5] == "location.scheduling.kcp.io/location-g created\n"
    assert "apiresourceschema.apis.kcp.io/" in printed[7]
    make_mailboxes(terminal)
    assert table(terminal("kubectl get Workspaces")) == table(shown.STAGE_1_MAILBOXES)
    return mailboxes_by_target(terminal)


def stage_2(terminal: Terminal) -> None:
    printed = terminal.play(blocks.STAGE_2)
    assert printed[0].splitlines()[-1] == (
        'Current workspace is "root:my-org:wmw-c" (type root:universal).'
    )
    assert printed[2].splitlines() == [
        "namespace/commonstuff created",
        "configmap/httpd-htdocs created",
        "deployment.apps/commond created",
    ]
    assert printed[9] == "edgeplacement.edge.kcp.io/edge-placement-s created\n"
    schedule(terminal)
    first, _, slices = terminal(blocks.STAGE_2_LOOK).partition("\n")
    assert first == 'Current workspace is "root:my-org:wmw-c".'
    assert document(slices) == document(shown.STAGE_2_SLICES)
    slices = terminal(blocks.STAGE_2_LOOK_AT_SPECIAL).partition("\n")[2]
    # The document's sentence says florin here; its table says guilder, and the table is right.
    [special] = yaml.safe_load(slices)["items"]
    assert special["metadata"]["name"] == "edge-placement-s"
    assert [each["locationName"] for each in special["destinations"]] == ["location-g"]


def stage_3(terminal: Terminal, mailboxes: dict[str, str]) -> None:
    translate(terminal)
    inside = 'Current workspace is "root:espw:{}" (type root:universal).\n'
    name = mailboxes[TARGETS["florin"]]
    enter, *looks = (block.format(mailbox=name) for block in blocks.STAGE_3_FLORIN)
    assert terminal(enter) == inside.format(name)
    config, namespaces, deployments = looks
    comes(terminal, config, shown.STAGE_3_SYNCER_CONFIG, document)
    comes(terminal, namespaces, shown.STAGE_3_FLORIN_NAMESPACES, table)
    comes(terminal, deployments, shown.STAGE_3_FLORIN_DEPLOYMENTS, table)
    name = mailboxes[TARGETS["guilder"]]
    leave, enter, look = (block.format(mailbox=name) for block in blocks.STAGE_3_GUILDER)
    assert terminal(leave) == 'Current workspace is "root:espw".\n'
    assert terminal(enter) == inside.format(name)
    comes(terminal, look, shown.STAGE_3_GUILDER_DEPLOYMENTS, table)


def stage_4(terminal: Terminal, ports: dict[int, int]) -> None:
    start_syncers(terminal)
    with terminal.without("KUBECONFIG"):
        wait_for_workloads(terminal)
        for looked, seen in (
            (blocks.STAGE_4_FLORIN, shown.STAGE_4_FLORIN),
            (blocks.STAGE_4_GUILDER, shown.STAGE_4_GUILDER),
        ):
            printed = terminal.play(looked)
            assert [*map(table, printed)] == [*map(table, seen)]
    for port, word in ((8081, "common"), (8082, "special"), (8083, "common")):
        # A pod without a readiness probe is available before its server listens.
        patiently = "curl --silent --retry 30 --retry-delay 1 --retry-all-errors"
        page = terminal(f"{patiently} http://localhost:{ports[port]}")
        assert page == shown.PAGE.format(word=word)


def stage_5(terminal: Terminal) -> None:
    terminal("kubectl ws root:espw")
    summarizer = terminal.background("skerry controllers --only summarizer")
    summarizer.until('"starting controller"')
    for letter, word, count in (("s", "special", 1), ("c", "common", 2)):
        terminal(f"kubectl ws root:my-org:wmw-{letter}")
        name = f"edge-placement-{letter}-deployments-{word}d"
        what = f"-n {word}stuff --timeout 50s statussummary/{name}"
        terminal(f"kubectl wait --for=create {what}")
        terminal(f"kubectl wait --for=jsonpath='{{.healthy}}'={count} {what}")
        listed = terminal(f"kubectl get statussummaries -n {word}stuff")
        cells = [name, "Deployment", f"{word}d", *[str(count)] * 3, "0", "0", "<age>"]
        assert table(listed)[1:] == [cells]


def test_all_five_stages(terminal: Terminal, start_hub: StartHub, ports: dict[int, int]) -> None:
    create_edges(terminal, ports)
    start_hub()
    mailboxes = stage_1(terminal)
    stage_2(terminal)
    stage_3(terminal, mailboxes)
    stage_4(terminal, ports)
    stage_5(terminal)
