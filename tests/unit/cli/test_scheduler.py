"""skerry scheduler reads kube-scheduler's flags and refuses what it would refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from skerry.cli.scheduler import scheduler

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NO_BINDER = """
profiles:
- schedulerName: a
  plugins: {multiPoint: {disabled: [{name: DefaultBinder}]}}
"""


def called(*words: str, **environment: str) -> Result:
    nowhere = {"KUBECONFIG": "", "HOME": "/nonexistent", "KUBERNETES_SERVICE_HOST": ""}
    return CliRunner().invoke(scheduler, list(words), env={**nowhere, **environment})


def written(tmp_path: Path, *words: str) -> dict[str, object]:
    """Return the configuration that *words* come down to."""
    target = tmp_path / "effective.yaml"
    result = called(*words, "--write-config-to", str(target))
    assert result.exit_code == 0, result.output
    document: dict[str, object] = yaml.safe_load(target.read_text())
    return document


def failing(tmp_path: Path, text: str) -> str:
    """Return how a configuration file is refused."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    result = called("--config", str(path), "--write-config-to", str(tmp_path / "out.yaml"))
    assert result.exit_code == 1
    assert not (tmp_path / "out.yaml").exists()
    line = result.stderr.strip().splitlines()[-1]
    assert '"command failed"' in line
    return line.replace('\\"', '"')


def test_without_a_file_defaults_and_flags_are_written(tmp_path: Path) -> None:
    document = written(tmp_path, "--kubeconfig", "/some/where", "--kube-api-qps", "7")
    assert document["kind"] == "KubeSchedulerConfiguration"
    assert document["clientConnection"] == {
        "acceptContentTypes": "",
        "burst": 100,
        "contentType": "application/vnd.kubernetes.protobuf",
        "kubeconfig": "/some/where",
        "qps": 7.0,
    }


@pytest.mark.parametrize(
    ("words", "elects"),
    [
        ((), True),
        (("--leader-elect",), True),
        (("--leader-elect=true",), True),
        (("--leader-elect=false",), False),
    ],
)
def test_switches_are_written_as_in_go(
    words: tuple[str, ...], elects: bool, tmp_path: Path
) -> None:
    document = written(tmp_path, *words, "-v=2")
    assert document["leaderElection"]["leaderElect"] is elects  # type: ignore[index]


def test_with_a_file_only_leader_election_flags_count(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + "clientConnection: {kubeconfig: /of/file}\n")
    document = written(
        tmp_path,
        *("--config", str(path), "--kubeconfig", "/of/flag"),
        *("--leader-elect-lease-duration", "1m30s"),
    )
    assert document["clientConnection"]["kubeconfig"] == "/of/file"  # type: ignore[index]
    assert document["leaderElection"]["leaseDuration"] == "1m30s"  # type: ignore[index]


def test_what_was_written_is_read_again_the_same(tmp_path: Path) -> None:
    first = written(tmp_path)
    copy = tmp_path / "copy.yaml"
    copy.write_text(yaml.safe_dump(first))
    assert written(tmp_path, "--config", str(copy)) == first


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "foo: 1\n", 'err="strict decoding error: unknown field "foo""'),
        (HEAD + "parallelism: -1\n", "should be an integer value greater than zero"),
        (
            HEAD + "profiles: [{schedulerName: a, plugins: {score: {enabled: [{name: Nope}]}}}]\n",
            'creating profile for scheduler name a: ScorePlugin "Nope" does not exist',
        ),
        (
            HEAD + NO_BINDER,
            'at least one bind plugin is needed for profile with scheduler name "a"',
        ),
    ],
)
def test_a_bad_configuration_is_refused_in_known_words(
    text: str, words: str, tmp_path: Path
) -> None:
    assert words in failing(tmp_path, text)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    result = called("--config", str(missing))
    assert result.exit_code == 1
    assert f"open {missing}: no such file or directory" in result.stderr


def test_a_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    result = called("--kubeconfig", str(missing), "--secure-port", "0")
    assert result.exit_code == 1
    assert f"stat {missing}: no such file or directory" in result.stderr


def test_outside_a_cluster_some_server_must_be_named() -> None:
    result = called("--secure-port", "0")
    assert result.exit_code == 1
    assert "not inside a cluster" in result.stderr


def test_nonsense_is_refused() -> None:
    assert called("--secure-port", "much").exit_code == 2
    assert called("--leader-elect=perhaps").exit_code == 2
    ended = called("--pod-max-in-unschedulable-pods-duration", "5 minutes")
    assert ended.exit_code == 2
    assert 'time: invalid duration "5 minutes"' in ended.stderr


def test_feature_gates_are_taken_or_refused(tmp_path: Path) -> None:
    written(tmp_path, "--feature-gates", "SchedulerQueueingHints=false,SidecarContainers=true")
    ended = called("--feature-gates", "DynamicResourceAllocation=true")
    assert ended.exit_code == 2
    assert "feature is locked to false" in ended.stderr


def test_explain_wants_a_pod_or_a_file() -> None:
    assert called("explain").exit_code == 2
    assert called("explain", "web", "-f", "pod.yaml").exit_code == 2


def test_explain_needs_a_cluster_to_ask(tmp_path: Path) -> None:
    result = called("explain", "web", HOME=str(tmp_path))
    assert result.exit_code == 1
    assert result.stderr.startswith("skerry scheduler explain: kubeconfig")


def test_explain_finds_no_pod_in_other_things(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    )
    file = tmp_path / "file.yaml"
    file.write_text("kind: ConfigMap\napiVersion: v1\n")
    result = called("explain", "-f", str(file), "--kubeconfig", str(config))
    assert result.exit_code == 1
    assert "no pod and nothing that makes pods" in result.stderr
