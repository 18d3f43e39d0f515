"""``config/`` holds what the code serves, in a form that Kubernetes 1.24 and kcp 0.11 accept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from skerry.api.kcp import edge
from skerry.app.manifests import manifest_files
from skerry.logic.machinery import crd
from skerry.logic.machinery.schema.validation import validate
from skerry.logic.machinery.workspaces.schemas import resources_of

CONFIG = Path(__file__).parents[3] / "config"
FILES = manifest_files()


def objects(folder: str, files: dict[str, str] = FILES) -> list[dict[str, Any]]:
    return [
        obj
        for path, text in files.items()
        if path.startswith(f"{folder}/")
        for obj in yaml.safe_load_all(text)
    ]


def test_the_repository_has_exactly_what_the_code_makes() -> None:
    """After a change: ``skerry manifests --write config``."""
    found = {
        str(path.relative_to(CONFIG)): path.read_text()
        for path in CONFIG.rglob("*")
        if path.is_file()
    }
    assert found == FILES


def test_every_edge_kind_is_defined_and_exported_alike() -> None:
    defined = {d["metadata"]["name"] for d in objects("crds")}
    assert defined == {d["metadata"]["name"] for d in edge.definitions()}
    schemas = [o for o in objects("exports") if o["kind"] == "APIResourceSchema"]
    [export] = [o for o in objects("exports") if o["kind"] == "APIExport"]
    names = [s["metadata"]["name"] for s in schemas]
    assert export["spec"]["latestResourceSchemas"] == names
    assert {name.partition(".")[2] for name in names} == defined
    by_name = {d["metadata"]["name"]: d for d in objects("crds")}
    for schema in schemas:
        [served] = resources_of(schema, "identity")
        [own] = crd.resources_of(by_name[schema["metadata"]["name"].partition(".")[2]])
        assert served.info == own.info
        assert served.schema == own.schema


@pytest.mark.parametrize("name", [
    "location_prod", "location_dev", "synctarget_prod", "synctarget_dev", "edgeplacement_all2all",
    "edgeplacement_dev", "edgeplacement_test-1", "test-placement-1",
])  # fmt: skip
def test_the_samples_of_the_walkthroughs_are_there(name: str) -> None:
    assert f"samples/{name}.yaml" in FILES


def test_imports_bind_the_provider_of_choice() -> None:
    [binding] = objects("imports")
    assert binding["spec"]["reference"]["export"] == {"path": "root:espw", "name": "edge.kcp.io"}
    [binding] = objects("imports", manifest_files("root:edge"))
    assert binding["spec"]["reference"]["export"]["path"] == "root:edge"


def test_edges_may_report_the_status_of_everything_the_compute_export_offers() -> None:
    role, binding = objects("compute")
    allowed = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert {"deployments/status", "ingresses/status", "pods/status", "services/status"} <= allowed
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    # An export's policy is asked about users under names of its own.
    assert binding["subjects"][0]["name"] == "apis.kcp.io:binding:system:authenticated"


def placement_errors(**spec: Any) -> list[str]:
    [definition] = [d for d in objects("crds") if d["spec"]["names"]["kind"] == "EdgePlacement"]
    [served] = crd.resources_of(definition)
    assert served.schema is not None
    obj = {"metadata": {"name": "p"}, "spec": {"locationSelectors": [{}], **spec}}
    return [str(error) for error in validate(served.schema, obj)]


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "NotIn", "values": []},
        {"key": "a", "operator": "Exists", "values": ["b"]},
        {"key": "a", "operator": "Has", "values": ["b"]},
        {"key": "a", "operator": "In", "values": ["b c"]},
        {"key": "a b", "operator": "Exists"},
        {"key": "Example.org/a", "operator": "Exists"},
        {"key": "x" * 64, "operator": "Exists"},
        {"key": "/a", "operator": "Exists"},
        {"operator": "Exists"},
    ],
)
@pytest.mark.parametrize(
    "member", ["locationSelectors", "namespaceSelector", "locationWorkspaceSelector"]
)
def test_a_malformed_selector_is_refused_by_the_schema_alone(
    member: str, expression: dict[str, Any]
) -> None:
    selector: Any = {"matchExpressions": [expression]}
    assert placement_errors(**{member: [selector] if member.endswith("s") else selector})


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "In", "values": ["b", ""]},
        {"key": "example.org/A_b.c-d", "operator": "NotIn", "values": ["b"]},
        {"key": "x" * 63, "operator": "Exists"},
        {"key": "a", "operator": "DoesNotExist", "values": []},
    ],
)
def test_a_selector_that_kubernetes_takes_is_taken(expression: dict[str, Any]) -> None:
    assert placement_errors(namespaceSelector={"matchExpressions": [expression]}) == []


def keywords(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keywords(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keywords(inner)


@pytest.mark.parametrize("folder", ["crds", "exports"])
def test_nothing_needs_more_than_kubernetes_1_24(folder: str) -> None:
    newer = {"x-kubernetes-validations", "selectableFields", "matchConditions"}
    assert not newer & set(keywords(objects(folder)))
