"""Edges, bindings and manifests as kubectl is given them."""

from __future__ import annotations

from typing import Any

import yaml

Raw = dict[str, Any]


def manifests(*documents: Raw, verb: str = "apply") -> str:
    text = yaml.safe_dump_all(documents)
    return f"kubectl {verb} -f - <<'EOF'\n{text}EOF\n"


def edge(name: str, **labels: str) -> list[Raw]:
    target = {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": name, "labels": {"id": name}},
        "spec": {"cells": {"default": "unneeded"}},
    }
    resource = {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}
    location = {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": name, "labels": {"env": "prod", **labels}},
        "spec": {"resource": resource, "instanceSelector": {"matchLabels": {"id": name}}},
    }
    return [target, location]


def binding(name: str, path: str, export: str) -> Raw:
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": name},
        "spec": {"reference": {"export": {"path": path, "name": export}}},
    }
