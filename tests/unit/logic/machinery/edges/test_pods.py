"""A pod is named by itself, or by what made it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.edges.pods import PodNameError, chosen_pod, pod_named


def pod(name: str, kind: str = "", owner: str = "", phase: str = "Running", **labels: str) -> Any:
    owners = [{"kind": kind, "name": owner}] if kind else []
    return {
        "metadata": {"name": name, "ownerReferences": owners, "labels": labels},
        "status": {"phase": phase},
    }


WEB = {"pod-template-hash": "7d9"}
PODS = [
    pod("web-7d9-b", "ReplicaSet", "web-7d9", "Pending", **WEB),
    pod("web-7d9-c", "ReplicaSet", "web-7d9", **WEB),
    pod("web-api-7d9-a", "ReplicaSet", "web-api-7d9", **WEB),
    pod("db-0", "StatefulSet", "db"),
    pod("alone"),
]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("web-1", ("Pod", "web-1")),
        ("pod/web-1", ("Pod", "web-1")),
        ("deploy/web", ("Deployment", "web")),
        ("Deployments.apps/web", ("Deployment", "web")),
        ("sts/db", ("StatefulSet", "db")),
        ("ds/log", ("DaemonSet", "log")),
        ("job/once", ("Job", "once")),
        ("rs/web-7d9", ("ReplicaSet", "web-7d9")),
    ],
)
def test_words_mean_what_they_mean_to_kubectl(word: str, meant: tuple[str, str]) -> None:
    assert pod_named(word) == meant


@pytest.mark.parametrize("word", ["service/web", "deploy/", "/web", "a/b/c"])
def test_what_has_no_pods_is_refused_by_its_word(word: str) -> None:
    with pytest.raises(PodNameError, match="want a pod"):
        pod_named(word)


@pytest.mark.parametrize(
    ("kind", "name", "chosen"),
    [
        ("Deployment", "web", "web-7d9-c"),
        ("Deployment", "web-api", "web-api-7d9-a"),
        ("ReplicaSet", "web-7d9", "web-7d9-c"),
        ("StatefulSet", "db", "db-0"),
    ],
)
def test_the_first_pod_that_runs_is_taken(kind: str, name: str, chosen: str) -> None:
    assert chosen_pod(kind, name, PODS) == chosen


def test_what_has_no_pod_is_refused_with_those_there_are() -> None:
    with pytest.raises(PodNameError, match=r"Deployment api has no pod there.*alone, db-0"):
        chosen_pod("Deployment", "api", PODS)
