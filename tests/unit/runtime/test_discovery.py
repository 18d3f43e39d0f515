"""Two forms of discovery, one meaning; and what could not be read is not what is absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from skerry.api.errors import NotFound, ServiceUnavailable
from skerry.api.kinds import GroupResource, GroupVersion, GroupVersionKind
from skerry.runtime.client import Client
from skerry.runtime.discovery import Mapper, discover
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport

POD = {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get", "list"]}
LOG = {"name": "pods/log", "kind": "Pod", "verbs": ["get"]}
LEGACY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "resources": [POD | {"shortNames": ["po"]}, LOG]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "edge.test",
                "versions": [{"version": "v1alpha1"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            }
        ],
    },
    "/apis/edge.test/v1": {"resources": [{"name": "sites", "kind": "Site"}]},
    "/apis/edge.test/v1alpha1": {"resources": [{"name": "sites", "kind": "Site"}]},
}


def group(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "versions": list(versions)}


def aggregated(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": list(groups)}


SITES = {"resource": "sites", "responseKind": {"kind": "Site"}, "scope": "Cluster"}
AGGREGATED: dict[str, Any] = {
    "/api": aggregated(
        group(
            "",
            {
                "version": "v1",
                "resources": [
                    {
                        "resource": "pods",
                        "responseKind": {"kind": "Pod"},
                        "scope": "Namespaced",
                        "verbs": ["get", "list"],
                        "shortNames": ["po"],
                        "subresources": [
                            {
                                "subresource": "log",
                                "responseKind": {"kind": "Pod"},
                                "verbs": ["get"],
                            }
                        ],
                    }
                ],
            },
        )
    ),
    "/apis": aggregated(
        group(
            "edge.test",
            {"version": "v1", "resources": [SITES]},
            {"version": "v1alpha1", "resources": [SITES]},
        )
    ),
}


class Server(AnsweringTransport):
    """Serves documents by their path; whatever has none is out of order."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self.documents = dict(documents)
        self.asked: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.asked.append(path)
        if path in self.documents:
            return Answer(200, {}, orjson.dumps(self.documents[path]))
        return Answer(503, {}, orjson.dumps(ServiceUnavailable("away").status()))


async def test_both_forms_say_the_same() -> None:
    old, new = Server(LEGACY), Server(AGGREGATED)
    assert await discover(Client(old)) == await discover(Client(new))
    assert new.asked == ["/api", "/apis"]


@pytest.mark.parametrize("documents", [LEGACY, AGGREGATED], ids=["legacy", "aggregated"])
async def test_the_preferred_version_of_a_group_comes_first(documents: dict[str, Any]) -> None:
    types = await discover(Client(Server(documents)))
    assert types.preferred()[GroupResource("edge.test", "sites")].version == "v1"
    found = types.for_group_kind("edge.test", "Site")
    assert found is not None
    assert found.version == "v1"
    other = types.for_kind(GroupVersionKind("edge.test", "v1alpha1", "Site"))
    assert other is not None
    assert other.version == "v1alpha1"
    assert types.for_kind(GroupVersionKind("edge.test", "v2", "Site")) is None
    assert types.for_group_kind("", "Site") is None


@pytest.mark.parametrize("documents", [LEGACY, AGGREGATED], ids=["legacy", "aggregated"])
async def test_subresources_belong_to_their_type_and_are_none_themselves(
    documents: dict[str, Any],
) -> None:
    types = await discover(Client(Server(documents)))
    (pods,) = [info for info in types.resources if info.group == ""]
    assert (pods.resource, pods.namespaced, pods.short_names) == ("pods", True, ("po",))
    assert [(sub.name, sub.verbs) for sub in pods.subresources] == [("log", ("get",))]


async def test_a_group_whose_server_is_away_is_named_and_the_rest_served() -> None:
    types = await discover(
        Client(Server({p: d for p, d in LEGACY.items() if p != "/apis/edge.test/v1"}))
    )
    assert types.failed == (GroupVersion("edge.test", "v1"),)
    assert [info.resource for info in types.resources] == ["pods", "sites"]


async def test_a_group_version_that_is_stale_is_named_and_its_types_not_believed() -> None:
    stale = {"version": "v1", "freshness": "Stale", "resources": [SITES]}
    documents = AGGREGATED | {"/apis": aggregated(group("edge.test", stale))}
    types = await discover(Client(Server(documents)))
    assert types.failed == (GroupVersion("edge.test", "v1"),)
    assert [info.resource for info in types.resources] == ["pods"]


async def test_a_server_that_does_not_answer_at_all_is_an_error_and_not_empty() -> None:
    with pytest.raises(ServiceUnavailable):
        await discover(Client(Server({})))


async def test_a_mapper_asks_once_and_again_for_a_kind_it_does_not_know() -> None:
    server = Server(AGGREGATED | {"/apis": aggregated()})
    mapper = Mapper(Client(server))
    assert (await mapper.resource_for(GroupVersionKind("", "v1", "Pod"))).resource == "pods"
    assert (await mapper.resource_for(GroupVersionKind("", "v1", "Pod"))).resource == "pods"
    assert len(server.asked) == 2
    server.documents = AGGREGATED
    site = GroupVersionKind("edge.test", "v1", "Site")
    assert (await mapper.resource_for(site)).resource == "sites"
    assert len(server.asked) == 4
    with pytest.raises(NotFound, match=r'no matches for kind "Nix" in version "edge.test/v1"'):
        await mapper.resource_for(GroupVersionKind("edge.test", "v1", "Nix"))
