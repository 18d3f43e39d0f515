"""The edge scheduler's pages, command by command, each on a hub of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

from tests.kit.e2e.walkthrough import Background, Terminal
from tests.kit.seeds import blocks, shown
from tests.kit.seeds.likeness import document, missing, said, shows

_PATIENCE_SECONDS = 60.0
StartHub = Callable[[], Background]


def bind_to(terminal: Terminal, provider: str) -> None:
    """Replace the provider's path in what is bound, for pages that use another one."""
    binding = terminal.folder / "config/imports/bind-edge.yaml"
    text = binding.read_text()
    assert text.count("root:espw") == 1
    binding.write_text(text.replace("root:espw", provider))


def test_the_page_of_february(terminal: Terminal, start_hub: StartHub) -> None:
    start_hub()
    bind_to(terminal, "root:edge")
    provider = terminal.play(blocks.FEBRUARY_PROVIDER)
    assert provider[0].splitlines() == [
        'Current workspace is "root".',
        'Workspace "edge" (type root:organization) is ready to use.',
        'Current workspace is "root:edge" (type root:organization).',
    ]
    assert "apiexport.apis.kcp.io/edge.kcp.io created\n" in provider[1]
    workload = terminal.play(blocks.FEBRUARY_WORKLOAD)
    assert workload == [
        'Current workspace is "kvdk2spgmbix".\n',
        "apibinding.apis.kcp.io/bind-espw created\nedgeplacement.edge.kcp.io/test-1 created\n",
        'Current workspace is "root:edge".\n',
    ]
    scheduler = terminal.background(
        "skerry controllers --only edge-scheduler --kcp-kubeconfig=.kcp/admin.kubeconfig -v 2"
    )
    scheduler.until("reconciling EdgePlacement test-1 in Workspace kvdk2spgmbix")
    scheduler.until_said(partial(missing, shown.FEBRUARY_STARTED))

    before = len(scheduler.lines)
    terminal.export(EDITOR="sed -i 's/env: test/env: prod/'")
    assert terminal(blocks.FEBRUARY_EDIT) == (
        'Current workspace is "kvdk2spgmbix".\nedgeplacement.edge.kcp.io/test-1 edited\n'
    )
    scheduler.until("reconciling EdgePlacement test-1 in Workspace kvdk2spgmbix", since=before)
    scheduler.until_said(partial(missing, shown.FEBRUARY_EDITED), before)

    before = len(scheduler.lines)
    assert terminal(blocks.FEBRUARY_DELETE) == 'edgeplacement.edge.kcp.io "test-1" deleted\n'
    scheduler.until("object deleted before handled", since=before)
    scheduler.until_said(partial(missing, shown.FEBRUARY_DELETED), before)
    scheduler.interrupt()


def test_the_page_of_june(terminal: Terminal, start_hub: StartHub) -> None:
    # The hub alone: skerry up would run the controllers too, and they would lead.
    start_hub()
    terminal.play(blocks.JUNE_INCLUDED)
    scheduler = terminal.background("skerry controllers --only edge-scheduler")
    scheduler.until('"starting controller"')
    scheduler.until_said(partial(missing, shown.JUNE_STARTED))

    inventory = terminal.play(blocks.JUNE_INVENTORY)
    assert inventory[0] == 'Current workspace is "root:compute".\n'
    assert inventory[1].splitlines() == [
        "location.scheduling.kcp.io/prod created",
        "location.scheduling.kcp.io/dev created",
        "synctarget.workload.kcp.io/prod created",
        "synctarget.workload.kcp.io/dev created",
    ]
    assert shows(inventory[2], shown.JUNE_INVENTORY)

    create, look = blocks.JUNE_ALL2ALL
    assert terminal(create).endswith("edgeplacement.edge.kcp.io/all2all created\n")
    _scheduled(terminal, look, shown.JUNE_ALL2ALL)
    create, look = blocks.JUNE_DEV
    assert terminal(create) == "edgeplacement.edge.kcp.io/dev created\n"
    _scheduled(terminal, look, shown.JUNE_DEV)

    scheduler.interrupt()
    terminal("skerry down --data-dir .kcp")
    assert "hub          not running" in terminal("skerry status --data-dir .kcp || true")


def _scheduled(terminal: Terminal, look: str, wanted: str) -> None:
    """Look until a slice is as shown: the page sleeps, which suffices on an idle machine."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (seen := document(terminal(f"{look} || true"))) != document(wanted):
        assert time.monotonic() < deadline, seen


def test_the_page_of_january(terminal: Terminal, start_hub: StartHub) -> None:
    start_hub()
    bind_to(terminal, "root")
    printed = terminal.play(blocks.JANUARY)
    assert printed[5] == "edgeplacement.edge.kcp.io/test-placement-1 created\n"
    scheduler = terminal.background("skerry controllers --only edge-scheduler")
    observed = scheduler.until('"Observed add"')[0]
    scheduler.until_said(partial(missing, shown.JANUARY_STARTED))
    assert said(observed)[0] == "Observed add"
    # The page shows a Go struct here; ours is the object as every client sees it.
    seen = json.loads(observed.partition(" obj=")[2])
    assert seen["kind"] == "EdgePlacement"
    assert seen["apiVersion"] == "edge.kcp.io/v1alpha1"
    assert seen["metadata"]["name"] == "test-placement-1"
    assert seen["metadata"]["generation"] == 1
    assert seen["metadata"]["annotations"]["kcp.io/cluster"] == "kvdk2spgmbix"
    assert seen["spec"]["locationSelectors"] == [{}]
    scheduler.interrupt()
