"""Types by group, version, resource and kind, as they are written."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupResource, GroupVersion, GroupVersionKind, ResourceInfo


@pytest.mark.parametrize(("text", "group"), [("v1", ""), ("apps/v1", "apps")])
def test_an_api_version_is_read_as_it_is_written(text: str, group: str) -> None:
    parsed = GroupVersion.parse(text)
    assert parsed == (group, "v1")
    assert str(parsed) == text
    assert GroupVersionKind(group, "v1", "Thing").api_version == text
    assert ResourceInfo(group, "v1", "things", "Thing", True).api_version == text


def test_the_core_group_is_left_out_of_a_resources_name() -> None:
    assert str(GroupResource("", "pods")) == "pods"
    assert str(GroupResource("apps", "deployments")) == "deployments.apps"


def test_a_resource_has_one_identity_whatever_its_version() -> None:
    old = ResourceInfo("apps", "v1beta1", "deployments", "Deployment", True)
    new = ResourceInfo("apps", "v1", "deployments", "Deployment", True)
    assert old.group_resource == new.group_resource == new.gvr.group_resource
    assert old.gvr != new.gvr
    assert new.gvr.group_version == GroupVersion("apps", "v1")
    assert old.gvk == GroupVersionKind("apps", "v1beta1", "Deployment")
