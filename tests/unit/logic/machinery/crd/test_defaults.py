"""What a CustomResourceDefinition gets that leaves it out."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.crd.defaults import default_crd, remember_storage_version


def definition(**spec: Any) -> dict[str, Any]:
    versions = [{"name": "v1", "storage": True}, {"name": "v2"}]
    return {
        "spec": {"names": {"kind": "Widget", "plural": "widgets"}, "versions": versions, **spec}
    }


def test_names_conversion_and_the_stored_version_are_filled_in() -> None:
    found = definition()
    default_crd(found)
    assert found["spec"]["names"] == {
        "kind": "Widget",
        "plural": "widgets",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    assert found["spec"]["conversion"] == {"strategy": "None"}
    assert found["status"] == {"storedVersions": ["v1"]}


def test_what_is_said_stays_and_a_second_time_changes_nothing() -> None:
    names = {"kind": "Widget", "plural": "widgets", "singular": "w", "listKind": "Ws"}
    service: dict[str, Any] = {"name": "s"}
    webhook = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}}
    found = definition(names=dict(names), conversion=webhook)
    default_crd(found)
    assert found["spec"]["names"] == names
    assert service["port"] == 443
    again = {**found}
    default_crd(again)
    assert again == found


def test_every_version_that_objects_may_be_stored_at_is_remembered() -> None:
    found = definition()
    found["status"] = {"storedVersions": ["v0"]}
    remember_storage_version(found)
    remember_storage_version(found)
    assert found["status"]["storedVersions"] == ["v0", "v1"]


@pytest.mark.parametrize("obj", [{}, {"spec": None}, {"spec": []}])
def test_what_is_no_definition_is_left_for_validation(obj: dict[str, Any]) -> None:
    before = dict(obj)
    default_crd(obj)
    assert obj == before
