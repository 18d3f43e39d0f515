"""Discovery tells clients what is served, in the words and the order they know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupVersion, GroupVersionKind, ResourceInfo, Subresource
from skerry.api.schema import ANY
from skerry.logic.machinery import discovery
from skerry.logic.machinery.resource import Resource

READ_WRITE = ("get", "patch", "update")


def resource(
    group: str, version: str, plural: str, kind: str, *, custom: bool = False, **facts: object
) -> Resource:
    info = ResourceInfo(group, version, plural, kind, True, **facts)  # type: ignore[arg-type]
    return Resource(info, ANY, storage_version="v1", custom=custom)


PODS = resource(
    "",
    "v1",
    "pods",
    "Pod",
    singular="pod",
    short_names=("po",),
    categories=("all",),
    subresources=(
        Subresource("status", GroupVersionKind("", "v1", "Pod"), READ_WRITE),
        Subresource("eviction", GroupVersionKind("policy", "v1", "Eviction"), ("create",)),
    ),
)
CONFIG_MAPS = resource("", "v1", "configmaps", "ConfigMap", short_names=("cm",))
BINDINGS = resource("", "v1", "bindings", "Binding", verbs=("create",))
DEPLOYMENTS = resource("apps", "v1", "deployments", "Deployment")
WIDGETS = [
    resource("example.com", version, "widgets", "Widget", custom=True)
    for version in ("v1alpha1", "v2", "v1", "v1beta2", "legacy")
]
EARLY = resource("aaa.example.com", "v1", "things", "Thing", custom=True)
ALL = [EARLY, *WIDGETS, DEPLOYMENTS, BINDINGS, PODS, CONFIG_MAPS]


def test_versions_come_by_stability_and_number() -> None:
    assert discovery.groups(ALL)["example.com"] == ["v2", "v1", "v1beta2", "v1alpha1", "legacy"]


def test_custom_groups_come_after_built_in_ones_by_name() -> None:
    assert list(discovery.groups(ALL)) == ["", "apps", "aaa.example.com", "example.com"]


@given(st.permutations(ALL))
def test_the_order_of_registration_does_not_matter(shuffled: list[Resource]) -> None:
    assert discovery.groups(shuffled) == discovery.groups(ALL)
    assert discovery.aggregated_groups(shuffled) == discovery.aggregated_groups(ALL)
    core = GroupVersion("", "v1")
    assert discovery.api_resource_list(core, shuffled) == discovery.api_resource_list(core, ALL)


def test_the_core_group_is_announced_at_api() -> None:
    assert discovery.api_versions("10.0.0.1:6443") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1:6443"}
        ],
    }


def test_groups_name_their_preferred_version() -> None:
    listed = discovery.api_group_list(ALL)
    assert listed["kind"] == "APIGroupList"
    assert [group["name"] for group in listed["groups"]] == [
        "apps",
        "aaa.example.com",
        "example.com",
    ]
    assert listed["groups"][2]["preferredVersion"] == {
        "groupVersion": "example.com/v2",
        "version": "v2",
    }


def test_one_group_can_be_asked_for() -> None:
    group = discovery.api_group("apps", ALL)
    assert group is not None
    assert (group["kind"], group["name"]) == ("APIGroup", "apps")


@pytest.mark.parametrize("group", ["", "nowhere.example.com"])
def test_a_group_that_is_not_served_has_no_document(group: str) -> None:
    assert discovery.api_group(group, ALL) is None
    assert discovery.api_resource_list(GroupVersion(group, "v9"), ALL) is None


def test_resources_are_listed_with_their_subresources() -> None:
    listed = discovery.api_resource_list(GroupVersion("", "v1"), ALL)
    assert listed is not None
    assert "apiVersion" not in listed
    assert [entry["name"] for entry in listed["resources"]] == [
        "bindings",
        "configmaps",
        "pods",
        "pods/eviction",
        "pods/status",
    ]
    assert listed["resources"][2] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": list(PODS.info.verbs),
        "shortNames": ["po"],
        "categories": ["all"],
        "storageVersionHash": "xPOwRZ+Yhw8=",
    }


def test_a_subresource_of_another_kind_names_its_group() -> None:
    listed = discovery.api_resource_list(GroupVersion("", "v1"), ALL)
    assert listed is not None
    assert listed["resources"][3] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }


def test_types_that_are_not_stored_have_no_storage_hash() -> None:
    listed = discovery.api_resource_list(GroupVersion("", "v1"), ALL)
    assert listed is not None
    assert "storageVersionHash" not in listed["resources"][0]


@pytest.mark.parametrize(
    ("group", "version", "kind", "text"),
    [
        ("", "v1", "ConfigMap", "qFsyl6wFWjQ="),
        ("", "v1", "Pod", "xPOwRZ+Yhw8="),
        ("apps", "v1", "Deployment", "8aSe+NMegvE="),
    ],
)
def test_the_storage_hash_is_kubernetes_own(group: str, version: str, kind: str, text: str) -> None:
    assert discovery.storage_version_hash(group, version, kind) == text


@pytest.mark.parametrize("version", discovery.AGGREGATED_VERSIONS)
def test_everything_can_be_asked_for_at_once(version: str) -> None:
    core = discovery.aggregated_core(ALL, version)
    assert core["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    assert [item["metadata"].get("name") for item in core["items"]] == [None]
    served = core["items"][0]["versions"][0]
    assert (served["version"], served["freshness"]) == ("v1", "Current")
    assert [entry["resource"] for entry in served["resources"]] == [
        "bindings",
        "configmaps",
        "pods",
    ]
    assert [each["subresource"] for each in served["resources"][2]["subresources"]] == [
        "eviction",
        "status",
    ]
    others = discovery.aggregated_groups(ALL, version)
    assert [item["metadata"]["name"] for item in others["items"]] == [
        "apps",
        "aaa.example.com",
        "example.com",
    ]


def test_custom_kinds_spell_out_their_response_kind() -> None:
    others = discovery.aggregated_groups([EARLY, DEPLOYMENTS])
    apps, early = (item["versions"][0]["resources"][0] for item in others["items"])
    assert apps["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}
    assert early["responseKind"] == {"group": "aaa.example.com", "version": "v1", "kind": "Thing"}


def test_scopes_are_reported() -> None:
    cluster = Resource(ResourceInfo("x.io", "v1", "things", "Thing", False), ANY, "v1")
    found = discovery.aggregated_groups([cluster])["items"][0]["versions"][0]["resources"][0]
    assert (found["scope"], found["singularResource"]) == ("Cluster", "thing")


def test_the_hash_of_a_document_is_upper_case_sha512() -> None:
    assert discovery.content_hash(b"{}").startswith("27C74670ADB75075")
    assert len(discovery.content_hash(b"")) == 128


def test_the_media_type_names_group_version_and_kind() -> None:
    assert discovery.aggregated_media_type("v2") == (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )
