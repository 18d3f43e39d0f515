"""Fields of its own pod that a container reads, as a variable or as a file."""

from __future__ import annotations

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.downward import (
    field_reference_errors,
    resource_reference_errors,
)


def of_field(path: str, version: str = "v1", *, in_volume: bool = False) -> list[str]:
    reference: Object = {"apiVersion": version, "fieldPath": path}
    return [str(error) for error in field_reference_errors(reference, "f", in_volume=in_volume)]


def of_resource(in_volume: bool = False, **reference: object) -> list[str]:
    return [str(error) for error in resource_reference_errors(reference, "r", in_volume=in_volume)]


@pytest.mark.parametrize(
    ("path", "variable", "file"),
    [
        ("metadata.name", True, True),
        ("metadata.uid", True, True),
        ("metadata.labels", False, True),
        ("metadata.annotations", False, True),
        ("spec.nodeName", True, False),
        ("status.podIPs", True, False),
        ("metadata.labels['app']", True, True),
        ("metadata.annotations['A.com/Key']", True, True),
        # Convertible, yet neither a variable nor a file may show it.
        ("spec.restartPolicy", False, False),
        ("status.phase", False, False),
    ],
)
def test_variables_and_files_show_different_fields(path: str, variable: bool, file: bool) -> None:
    assert (of_field(path) == []) is variable
    assert (of_field(path, in_volume=True) == []) is file


def test_what_is_missing_is_named_before_anything_else() -> None:
    assert [str(e) for e in field_reference_errors({}, "f")] == ["f.apiVersion: Required value"]
    assert [str(e) for e in field_reference_errors({"apiVersion": "v1"}, "f")] == [
        "f.fieldPath: Required value"
    ]


@pytest.mark.parametrize(
    ("path", "version", "text"),
    [
        ("metadata.name", "v2", "error converting fieldPath: unsupported pod version: v2"),
        ("spec.nope", "v1", "error converting fieldPath: field label not supported: spec.nope"),
        (
            "metadata.name['a']",
            "v1",
            (
                "error converting fieldPath: field label does not support subscript: "
                "\"metadata.name['a']\""
            ),
        ),
    ],
)
def test_a_field_that_pods_do_not_have_cannot_be_converted(
    path: str, version: str, text: str
) -> None:
    (found,) = of_field(path, version)
    assert found.startswith("f.fieldPath: Invalid value: ")
    assert found.endswith(text)


def test_a_subscript_is_a_qualified_name_and_annotations_ignore_case() -> None:
    assert of_field("metadata.annotations['UPPER']") == []
    assert of_field("metadata.labels['a b']")[0].startswith('f: Invalid value: "a b"')
    assert of_field("metadata.annotations['']")[0].startswith('f: Invalid value: ""')


def test_a_subscript_that_is_not_closed_is_a_field_of_that_odd_name() -> None:
    (text,) = of_field("metadata.labels['a'")
    assert "field label not supported" in text


def test_a_file_says_of_which_container() -> None:
    assert of_resource(resource="limits.cpu") == []
    assert of_resource(True, resource="limits.cpu") == ["r.containerName: Required value"]
    assert of_resource(True, resource="limits.cpu", containerName="c") == []


def test_only_amounts_that_containers_have_are_shown() -> None:
    assert of_resource() == ["r.resource: Required value"]
    assert of_resource(resource="requests.hugepages-2Mi") == []
    (text,) = of_resource(resource="limits.pods")
    assert text.startswith('r.resource: Unsupported value: "limits.pods"')


@pytest.mark.parametrize(
    ("resource", "divisor", "good"),
    [
        ("limits.cpu", "1m", True),
        ("limits.cpu", "1", True),
        ("limits.cpu", "0", True),
        ("limits.cpu", "1k", False),
        ("requests.memory", "1Mi", True),
        ("requests.memory", "1m", False),
        ("limits.ephemeral-storage", "1Gi", True),
        ("limits.ephemeral-storage", "2", False),
        ("limits.hugepages-1Gi", "1Mi", True),
        ("limits.hugepages-1Gi", "3Mi", False),
        ("limits.cpu", "many", False),
    ],
)
def test_a_divisor_is_one_whole_unit_of_its_resource(
    resource: str, divisor: str, good: bool
) -> None:
    found = of_resource(resource=resource, divisor=divisor)
    assert (found == []) is good
    assert all(text.startswith("r.divisor: ") for text in found)
