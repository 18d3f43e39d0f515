"""The chart, by Helm itself: what it renders, refuses, installs, upgrades and leaves behind."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from skerry import __version__
from skerry.logic.fleet.syncing.access import edge_access
from skerry.logic.fleet.syncing.manifest import ManifestTerms, edge_manifest, helm_values
from skerry.logic.machinery.edges.scope import scope_of
from tests.kit.e2e.processes import Kubectl, ServerProcess

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "skerry"
RENDER = runpy.run_path(str(DEPLOY / "render.py"))
HELM = str(Path(sys.executable).with_name("helm"))
PLACED = scope_of(
    {
        "namespaceScope": {
            "namespaces": ["shop", "site"],
            "resources": [
                {"group": "", "resource": "configmaps", "apiVersion": "v1"},
                {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
            ],
        },
        "clusterScope": [
            {"group": "", "resource": "persistentvolumes", "apiVersion": "v1", "objects": ["pv"]}
        ],
    }
)
TERMS = ManifestTerms(
    "florin", "mb", f"skerry:{__version__}", edge_access(PLACED), "kind: Config\n", True, "tools"
)


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for obj in objects
    }


def rendered(values: object) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return what Helm makes, without the annotations that are for Helm."""
    found = [obj for obj in yaml.safe_load_all(RENDER["template"](values, "tools")) if obj]
    for obj in found:
        obj["metadata"].pop("annotations", None)
    return by_name(found)


def test_the_files_for_kubectl_are_what_the_chart_makes() -> None:
    """After a change: ``make manifests``."""
    found = {path.name: path.read_text() for path in (DEPLOY / "kubernetes").iterdir()}
    assert found == RENDER["files"]()


@pytest.mark.parametrize("terms", [
    TERMS,
    replace(TERMS, admin=True),
    replace(TERMS, tunnel=True),
    replace(TERMS, makes_key=False, storage_class="fast"),
    replace(TERMS, access=edge_access(scope_of(None)), image="example/skerry:9"),
], ids=["placed", "admin", "tunnel", "foreign hub", "nothing placed"])  # fmt: skip
def test_the_chart_makes_the_objects_that_the_command_prints(terms: ManifestTerms) -> None:
    wanted = by_name(edge_manifest(terms))
    del wanted["Namespace", "", "tools"]  # Helm makes it
    assert rendered(helm_values(terms)) == wanted


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"hub": {"stor": "etcd"}}, "stor"),
        ({"hub": {"store": "postgres"}}, "hub.store"),
        ({"hub": {"store": "etcd", "tunnel": True}}, "hub.tunnel"),
        ({"controllers": {"replicas": 0}}, "controllers.replicas"),
        ({"syncer": {"extraArgs": ["deletion-count=3"]}}, "syncer.extraArgs"),
        ({"syncer": {"enabled": True}}, "skerry edge manifest NAME --helm-values"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_that_mean_nothing_are_refused(values: object, complaint: str) -> None:
    with pytest.raises(SystemExit) as refused:
        RENDER["template"](values)
    assert complaint in str(refused.value)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("cluster"))
    process.start()
    yield process
    process.kill()


class Release:
    """Helm as a person runs it."""

    def __init__(self, cluster: ServerProcess, home: Path) -> None:
        self.kubectl = Kubectl(cluster.kubeconfig, home)
        self._environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(cluster.kubeconfig),
        }  # fmt: skip

    def __call__(self, *words: str, values: object = None) -> str:
        done = subprocess.run(
            [HELM, *words, *(("--values", "-") if values is not None else ())],
            env=self._environment, input=json.dumps(values), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def names(self, kind: str, namespace: str) -> set[str]:
        found = self.kubectl.json("-n", namespace, "get", kind)["items"]
        return {obj["metadata"]["name"] for obj in found}


@pytest.mark.parametrize("store", ["sqlite", "etcd"])
def test_helm_installs_and_removes_a_hub(
    cluster: ServerProcess, tmp_path: Path, store: str
) -> None:
    helm, place = Release(cluster, tmp_path), f"hub-{store}"
    flags = (str(CHART), "--namespace", place, "--create-namespace")
    printed = helm("install", "hub", *flags, values={"hub": {"store": store}})
    assert f"https://skerry-hub.{place}.svc:6443" in printed
    assert helm.names("deployments", place) == {"skerry-hub", "skerry-controllers"}
    helm("upgrade", "hub", *flags, "--reuse-values", values={"hub": {"extraArgs": ["--v=4"]}})
    hub = helm.kubectl.json("-n", place, "get", "deployment", "skerry-hub")
    assert hub["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--v=4"
    helm("uninstall", "hub", "--namespace", place)
    assert helm.names("deployments", place) == set()
    # What the hub has stored is not the release's to delete.
    assert helm.names("pvc", place) == ({"skerry-hub"} if store == "sqlite" else set())


def test_an_upgrade_changes_rights_and_keeps_identity_and_placed_namespaces(
    cluster: ServerProcess, tmp_path: Path
) -> None:
    helm, name = Release(cluster, tmp_path), "kubestellar-syncer-florin-"
    # One of them is there already, and somebody else's.
    helm.kubectl("create", "namespace", "shop")
    flags = (str(CHART), "--namespace", "tools", "--create-namespace")
    before = replace(TERMS, access=edge_access(scope_of(None)))
    assert "skerry edge approve florin" in helm(
        "install", "florin", *flags, values=helm_values(before)
    )
    (secret,) = {found for found in helm.names("secrets", "tools") if found.endswith("-identity")}
    helm.kubectl("-n", "tools", "patch", "secret", secret, "--type=merge",
                 "-p", '{"stringData": {"identity": "kept"}}')  # fmt: skip
    after = helm_values(replace(TERMS, kubeconfig=None))
    for _ in range(2):
        helm("upgrade", "florin", *flags, "--reuse-values", values=after)
        for place in ("shop", "site"):
            (binding,) = helm.names("rolebindings", place)
            assert binding.startswith(name)
    kept = helm.kubectl.json("-n", "tools", "get", "secret", secret)
    assert kept["data"] == {"identity": "a2VwdA=="}
    helm("uninstall", "florin", "--namespace", "tools")
    assert helm.names("deployments", "tools") == set()
    assert {"shop", "site"} <= helm.names("namespaces", "")
    assert secret in helm.names("secrets", "tools")
