"""The manifests in ``config/``: the kinds this code serves, for other servers to install.

| folder | for |
|---|---|
| ``crds`` | the provider workspace itself: the edge kinds as definitions of its own |
| ``exports`` | the provider workspace: schemas, the export, and who may bind it |
| ``imports`` | a workload workspace: the binding to the provider |
| ``compute`` | ``root:compute`` of a kcp: leave for edges to report status, which ours has anyway |
| ``samples`` | objects to begin with |

They use nothing that Kubernetes 1.24 does not know, so that they install on kcp 0.11 too: rules in
CEL are left out, and what those refuse at our hub (changing a revision or a record, for one) only
whoever may write there keeps from happening elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from skerry.api.edge import API_VERSION, USUAL_PROVIDER
from skerry.api.kcp import edge
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.objects import Object
from skerry.app.hub_content import (
    compute_permission_objects,
    edge_export_objects,
)

_HEADER = "# Made by `skerry manifests`; change the code it comes from instead.\n"
_RULES = "x-kubernetes-validations"
_BINDING = "bind-espw"
_TARGETS = SYNC_TARGETS._asdict()


def manifest_files(provider: str = USUAL_PROVIDER) -> dict[str, str]:
    """Return the text of every file, by its path below ``config/``."""
    return {
        path: _text([_without_rules(obj) for obj in objects])
        for path, objects in _objects(provider).items()
    }


def _without_rules(value: Any) -> Any:
    """Return *value* without the rules that a schema states in CEL."""
    if isinstance(value, dict):
        return {k: _without_rules(v) for k, v in value.items() if k != _RULES}
    if isinstance(value, list):
        return [_without_rules(each) for each in value]
    return value


def _objects(provider: str) -> Mapping[str, Sequence[Object]]:
    return {
        **{f"crds/{_crd_file(kind)}": [kind] for kind in edge.definitions()},
        **_exports(),
        "imports/bind-edge.yaml": [_binding(provider)],
        f"compute/rbac-{edge.GROUP}.yaml": compute_permission_objects(),
        **{f"samples/{name}": [obj] for name, obj in _samples().items()},
    }


def _crd_file(definition: Object) -> str:
    plural, _, group = definition["metadata"]["name"].partition(".")
    return f"{group}_{plural}.yaml"


def _exports() -> dict[str, list[Object]]:
    files: dict[str, list[Object]] = {}
    for obj in edge_export_objects():
        name = obj["metadata"]["name"]
        if obj["kind"] == "APIResourceSchema":
            files[f"exports/apiresourceschema-{name.partition('.')[2]}.yaml"] = [obj]
        elif obj["kind"] == "APIExport":
            files[f"exports/apiexport-{name}.yaml"] = [obj]
        else:
            files.setdefault(f"exports/rbac-{edge.GROUP}.yaml", []).append(obj)
    return files


def _binding(provider: str) -> Object:
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": _BINDING},
        "spec": {"reference": {"export": {"path": provider, "name": edge.GROUP}}},
    }


def _samples() -> dict[str, Object]:
    samples = {
        f"{kind}_{name}.yaml": make(name)
        for name in ("prod", "dev")
        for kind, make in (("location", _location), ("synctarget", _sync_target))
    }
    everywhere: Object = {}
    return {
        **samples,
        "edgeplacement_all2all.yaml": _placement("all2all", everywhere),
        "edgeplacement_dev.yaml": _placement("dev", {"matchLabels": {"env": "dev"}}),
        "edgeplacement_test-1.yaml": _placement("test-1", {"matchLabels": {"env": "test"}}),
        "test-placement-1.yaml": _placement("test-placement-1", everywhere),
    }


def _location(name: str) -> Object:
    labels = {"env": name}
    return {
        "apiVersion": str(LOCATIONS.group_version),
        "kind": "Location",
        "metadata": {"name": name, "labels": labels},
        "spec": {"resource": dict(_TARGETS), "instanceSelector": {"matchLabels": dict(labels)}},
    }


def _sync_target(name: str) -> Object:
    return {
        "apiVersion": str(SYNC_TARGETS.group_version),
        "kind": "SyncTarget",
        "metadata": {"name": name, "labels": {"env": name}},
        "spec": {"cells": {"foo": "bar"}},
    }


def _placement(name: str, selector: Object) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": "EdgePlacement",
        "metadata": {"name": name},
        "spec": {"locationSelectors": [selector]},
    }


class _Dumper(yaml.SafeDumper):
    """Writes everything out: a reader of manifests should not have to follow aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(objects: Sequence[Object]) -> str:
    parts = [yaml.dump(obj, Dumper=_Dumper, sort_keys=False, width=100) for obj in objects]
    return _HEADER + "---\n".join(parts)
