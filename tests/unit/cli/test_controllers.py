"""skerry controllers reads the flags that the first controllers had."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skerry.cli.main import main


def called(*words: str, **environment: str) -> Result:
    # Through the whole command: click remembers on a command how it was first asked for help.
    words = ("controllers", *words)
    return CliRunner().invoke(main, words, env={"KUBECONFIG": "", **environment})


@pytest.mark.parametrize("verbosity", [["-v", "2"], ["-v=2"], ["-v2"], ["--v=2"]])
def test_verbosity_is_written_as_in_go(verbosity: list[str], tmp_path: Path) -> None:
    result = called(*verbosity, "--kcp-kubeconfig", str(tmp_path / "missing"))
    assert result.exit_code == 1
    assert "there is no such file" in result.output


def test_nonsense_is_refused() -> None:
    assert called("-v=much").exit_code == 2
    assert called("--only", "nobody").exit_code == 2
    assert called("--concurrency", "0").exit_code == 2
    assert called("--denatured-kinds", "sometimes").exit_code == 2


def test_every_client_flag_is_known() -> None:
    shown = called("--help").output
    for prefix in ("espw", "workload", "root", "inventory", "sspw", "mbws", "sysadm"):
        for part in ("kubeconfig", "context", "user", "cluster"):
            assert f"--{prefix}-{part}" in shown
    assert "--allclusters-context" in shown
    assert "--merged" not in shown


def test_a_context_without_workspace_needs_a_provider_path(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    )
    result = called(KUBECONFIG=str(config))
    assert result.exit_code == 1
    assert "give --espw-path" in result.output


def test_an_address_is_host_and_port(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1/clusters/root'}}]\n"
    )
    result = called("--server-bind-address", "nonsense", "--kubeconfig", str(config))
    assert result.exit_code == 1
    assert "want host:port" in result.output
