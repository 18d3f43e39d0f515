"""Flags and files meet as they do in kube-scheduler."""

from __future__ import annotations

from skerry.scheduler.config.flags import Flags, configured

FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /from/file}
leaderElection: {resourceName: mine}
"""


def test_without_a_file_the_kubeconfig_flag_counts() -> None:
    config = configured(None, Flags(kubeconfig="/from/flag", kube_api_qps=7))
    assert (config.kubeconfig, config.qps) == ("/from/flag", 7.0)


def test_with_a_file_it_does_not() -> None:
    config = configured(FILE, Flags(kubeconfig="/from/flag", kube_api_qps=7))
    assert (config.kubeconfig, config.qps) == ("/from/file", 50.0)


def test_leader_election_flags_override_the_file() -> None:
    config = configured(FILE, Flags(leader_elect=False, leader_elect_lease_duration=60))
    assert not config.leader_election.enabled
    assert config.leader_election.lease_seconds == 60
    assert config.leader_election.name == "mine"


def test_profiling_flags_count_only_without_a_file() -> None:
    assert configured(None, Flags(profiling=False)).document["enableProfiling"] is False
    assert configured(FILE, Flags(profiling=False)).document["enableProfiling"] is True
