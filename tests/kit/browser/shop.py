"""A shop that is placed on some edges and not on others, for tests that look at it.

There are no syncers: edges are SyncTargets that were never heard of, which is all that placing,
explaining and foreseeing need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.kit.browser.console import Console
from tests.kit.e2e.hubs import Shell

INVENTORY, SHOP = "root:inventory", "root:shop"
_TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial" / "in-the-browser.md"
_SHELL = re.compile(r"^```shell\n(.*?)^```", re.M | re.S)


def furnish(console: Console) -> None:
    """Make what the tutorial of the browser begins with, by its own commands."""
    home = console.directory / "home"
    home.mkdir()
    (commands,) = _SHELL.findall(_TUTORIAL.read_text())
    Shell(console.kubeconfig, home, home)(commands)


def edge(name: str, labels: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    """Return the SyncTarget and the Location of an edge."""
    yield {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": name, "labels": {"id": name}},
    }
    yield {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "resource": {
                "group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets",
            },
            "instanceSelector": {"matchLabels": {"id": name}},
        },
    }  # fmt: skip


def deployment(name: str, image: str) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def make_workspace(console: Console, path: str) -> None:
    """Make a workspace below root, and return once it is ready."""
    name = path.rpartition(":")[2]
    workspace = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}},
    }
    console.apply("root", workspace)
    ready = "--for=jsonpath={.status.phase}=Ready"
    console.kubectl("root", "wait", f"workspace/{name}", ready, "--timeout=60s")
