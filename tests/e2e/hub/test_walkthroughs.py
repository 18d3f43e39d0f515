"""The published walkthroughs run as written, back to back, each on a hub of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.e2e.hub import walkthroughs
from tests.e2e.hub.hubs import Hub, Shell

MakeShell = Callable[..., Shell]


def played(shell: Shell, blocks: Sequence[str]) -> list[str]:
    return [shell(block) for block in blocks]


def aged(text: str) -> str:
    """Return *text* with ages made equal, and the blanks that follow from their length."""
    return re.sub(r"\b\d+(s|m|m\d+s)$", "AGE", text, flags=re.MULTILINE)


def config_for(provider: str, shell: Shell, folder: Path) -> Path:
    """Make a folder with ``config/`` for a provider workspace that is not the usual one."""
    shell(f"skerry manifests --provider {provider} --write {folder}/config")
    return folder


def test_edge_scheduler_of_february(fresh_hub: Hub, shell_at: MakeShell, tmp_path: Path) -> None:
    folder = config_for("root:edge", shell_at(fresh_hub), tmp_path)
    printed = played(shell_at(fresh_hub, folder), walkthroughs.EDGE_SCHEDULER_FEBRUARY)
    assert printed[0].splitlines() == [
        'Current workspace is "root".',
        'Workspace "edge" (type root:organization) is ready to use.',
        'Current workspace is "root:edge" (type root:organization).',
    ]
    assert "apiexport.apis.kcp.io/edge.kcp.io created\n" in printed[1]
    assert printed[2] == 'Current workspace is "kvdk2spgmbix".\n'
    assert printed[3] == (
        "apibinding.apis.kcp.io/bind-espw created\nedgeplacement.edge.kcp.io/test-1 created\n"
    )
    assert printed[4] == 'Current workspace is "root:edge".\n'
    assert printed[5] == (
        'Current workspace is "kvdk2spgmbix".\n'
        "Edit cancelled, no changes made.\n"
        'edgeplacement.edge.kcp.io "test-1" deleted\n'
    )


def test_scheduler_of_june(fresh_hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(fresh_hub)
    played(shell, walkthroughs.SCHEDULER_JUNE_PROVIDER)
    printed = played(shell, walkthroughs.SCHEDULER_JUNE)
    assert printed[0] == 'Current workspace is "root:compute".\n'
    assert printed[1].splitlines() == [
        "location.scheduling.kcp.io/prod created",
        "location.scheduling.kcp.io/dev created",
        "synctarget.workload.kcp.io/prod created",
        "synctarget.workload.kcp.io/dev created",
    ]
    shown = aged(printed[2])
    assert shown.rstrip() == walkthroughs.LOCATIONS_AND_TARGETS.rstrip()
    assert printed[3].endswith("edgeplacement.edge.kcp.io/all2all created\n")
    assert printed[4] == "edgeplacement.edge.kcp.io/dev created\n"


def test_edge_scheduler_of_january(fresh_hub: Hub, shell_at: MakeShell, tmp_path: Path) -> None:
    folder = config_for("root", shell_at(fresh_hub), tmp_path)
    shell = shell_at(fresh_hub, folder)
    printed = played(shell, walkthroughs.EDGE_SCHEDULER_JANUARY)
    assert printed[5] == "edgeplacement.edge.kcp.io/test-placement-1 created\n"
    urls = "-o jsonpath='{.status.virtualWorkspaces[*].url}'"
    assert shell(f"kubectl get apiexport edge.kcp.io {urls}") == (
        f"{fresh_hub.url}/services/apiexport/root/edge.kcp.io"
    )


def test_example_scenario_of_the_first_quarter(fresh_hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(fresh_hub)
    first = played(shell, walkthroughs.STAGE_1)
    assert first[1] == "synctarget.workload.kcp.io/sync-target-f created\n"
    assert first[3] == 'location.scheduling.kcp.io "default" deleted\n'
    assert "apiresourceschema.apis.kcp.io/" in first[7]
    second = played(shell, walkthroughs.STAGE_2)
    assert second[0].splitlines()[-1] == (
        'Current workspace is "root:my-org:wmw-c" (type root:universal).'
    )
    assert second[2].splitlines() == [
        "namespace/commonstuff created",
        "configmap/httpd-htdocs created",
        "deployment.apps/commond created",
    ]
    assert second[9] == "edgeplacement.edge.kcp.io/edge-placement-s created\n"
    shell("kubectl ws root:imw-1")
    assert [line.split()[0] for line in shell("kubectl get locations").splitlines()[1:]] == [
        "location-f",
        "location-g",
    ]
    shell("kubectl ws root:my-org:wmw-c")
    columns = shell("kubectl get -n commonstuff deployments").splitlines()
    assert columns[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert columns[1].split()[:4] == ["commond", "0/0", "0", "0"]


def test_workspaces_are_listed_with_their_columns(fresh_hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(fresh_hub)
    shell("kubectl ws create one\nkubectl ws create two --type universal")
    rows = [line.split() for line in shell("kubectl get Workspaces").splitlines()]
    assert rows[0] == ["NAME", "TYPE", "REGION", "PHASE", "URL", "AGE"]
    assert [row[:3] for row in rows[1:]] == [
        ["compute", "universal", "Ready"],
        ["one", "organization", "Ready"],
        ["two", "universal", "Ready"],
    ]
    assert all(row[3].startswith(f"{fresh_hub.url}/clusters/") for row in rows[1:])
