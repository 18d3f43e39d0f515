"""What APIServices say, and how documents of several servers are joined."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupVersion
from skerry.logic.machinery.aggregation import (
    AggregatedVersion,
    aggregated_version,
    forwarded,
    group_document,
    identity_lines,
    with_discovery,
    with_groups,
)


def api_service(group: str, version: str, priority: int = 10, **more: Any) -> Any:
    service = {"name": "s", "namespace": "n"}
    spec = {"group": group, "version": version, "versionPriority": priority, "service": service}
    ready = [{"type": "Available", "status": "True"}]
    return {"spec": {**spec, **more}, "status": {"conditions": ready}}


def version(group: str, name: str, priority: int = 10, **more: Any) -> AggregatedVersion:
    found = aggregated_version(api_service(group, name, priority, **more))
    assert found is not None
    return found


def test_an_api_service_without_a_service_is_served_here() -> None:
    assert aggregated_version(api_service("a", "v1", service=None)) is None
    found = version("a", "v1")
    assert (found.host, found.port, found.is_available) == ("s.n.svc", 443, True)
    assert version("a", "v1", caBundle="%").ca_bundle is None


def test_groups_of_others_come_after_ours_with_the_preferred_version_first() -> None:
    ours = {"groups": [{"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": 1}]}
    others = [version("zoo", "v1", 5), version("zoo", "v2", 9), version("apps", "v9")]
    joined = {each["name"]: each for each in with_groups(ours, others)["groups"]}
    assert list(joined) == ["apps", "zoo"]
    assert [each["version"] for each in joined["zoo"]["versions"]] == ["v2", "v1"]
    assert [each["version"] for each in joined["apps"]["versions"]] == ["v1", "v9"]
    assert joined["apps"]["preferredVersion"] == 1
    assert group_document("zoo", others) == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        **joined["zoo"],
    }
    assert group_document("gone", others) is None


def test_discovery_has_what_was_learned_and_says_if_that_is_old() -> None:
    listed = {
        "resources": [
            {"name": "pandas/scale", "kind": "Scale", "group": "autoscaling", "version": "v1"},
            {"name": "pandas", "kind": "Panda", "verbs": ["get"], "shortNames": ["pa"]},
        ]
    }
    away = aggregated_version({**api_service("zoo", "v1"), "status": {}})
    assert away is not None
    known = {GroupVersion("zoo", "v1"): listed}
    (item,) = with_discovery({"items": []}, [away, version("other", "v1")], known)["items"]
    (found,) = item["versions"]
    assert (item["metadata"]["name"], found["freshness"]) == ("zoo", "Stale")
    (resource,) = found["resources"]
    assert resource["responseKind"] == {"group": "zoo", "version": "v1", "kind": "Panda"}
    (below,) = resource["subresources"]
    assert below["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


@pytest.mark.parametrize(
    "name", ["x-remote-user", "x-remote-extra-a", "authorization", "impersonate-user", "te", "odd"]
)
def test_what_says_who_asks_is_never_taken_from_the_client(name: str) -> None:
    headers = {name: "evil", "connection": "keep-alive, Odd", "accept": "a/b"}
    assert forwarded(headers) == {"accept": "a/b"}


@given(st.text(min_size=1, max_size=20))
def test_keys_of_extras_are_escaped_to_what_a_header_may_be_called(key: str) -> None:
    ((_, _), (name, value)) = identity_lines("jane", "", [], {key: ["v"]})
    assert name.isascii()
    assert not set(name) & set(' \r\n:"(),/;<=>?@[]{}')
    assert value == "v"
