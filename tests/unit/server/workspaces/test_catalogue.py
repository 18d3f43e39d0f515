"""The types of a hub's clusters: the system's before bound ones, and those before local ones."""

from __future__ import annotations

from typing import Any

from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import ANY_IDENTITY
from skerry.server.catalogue import CRD_GROUP, CRD_RESOURCE
from skerry.server.change import Change
from skerry.server.codec import encode
from skerry.server.workspaces.catalogue import HubCatalogue, kept_resources, system_resources
from skerry.server.workspaces.state import HubState
from skerry.store.base import Event
from tests.kit.machinery.crds import established
from tests.kit.server.hub import definition, schema

WIDGETS = ("example.io", "v1", "widgets")
NAME = "v1.widgets.example.io"


class Place:
    """A hub's state and its catalogue, fed with objects as by the dispatcher."""

    def __init__(self) -> None:
        self.state = HubState()
        self.catalogue = HubCatalogue(self.state)
        offered = schema()
        offered["metadata"]["uid"] = "u-1"
        self.state._schema_changed(
            ObjectKey("apis.kcp.io", "apiresourceschemas", "shop", "", NAME), offered
        )
        export: Object = {
            "metadata": {"name": "widgets"},
            "spec": {"latestResourceSchemas": [NAME]},
            "status": {"identityHash": "identity"},
        }
        key = ObjectKey("apis.kcp.io", "apiexports", "shop", "", "widgets")
        self.state._export_changed(key, export)

    def bind(self, cluster: str, identity: str = "identity", **metadata: Any) -> None:
        kind = {"group": "example.io", "resource": "widgets",
                "schema": {"name": NAME, "UID": "u-1", "identityHash": identity}}  # fmt: skip
        obj = {
            "apiVersion": "v1",
            "kind": "X",
            "metadata": {"name": "b", **metadata},
            "spec": {"reference": {"export": {"name": "widgets"}}},
            "status": {
                "apiExportClusterName": "shop",
                "boundResources": [kind],
                "conditions": [{"status": "True"}],
            },
        }
        self.state._binding_changed(self._key(cluster), encode(obj))

    def unbind(self, cluster: str) -> None:
        self.state._binding_changed(self._key(cluster), None)

    def _key(self, cluster: str) -> ObjectKey:
        return ObjectKey("apis.kcp.io", "apibindings", cluster, "", "b")

    def define(self, cluster: str, group: str = "") -> None:
        made = definition()
        if group:
            made["spec"]["group"] = group
            made["metadata"]["name"] = f"widgets.{group}"
        crd.default_crd(made)
        made = established(made)
        key = ObjectKey(CRD_GROUP, CRD_RESOURCE, cluster, "", made["metadata"]["name"])
        self.catalogue.observe(Change(Event(5, key.path(), encode(made), None, 0)))

    def found(self, cluster: str, resource: str = "widgets") -> Any:
        return self.catalogue.types(cluster).find("example.io", "v1", resource)


def test_a_workspace_has_no_pods_until_it_binds_them() -> None:
    names = {each.info.resource for each in kept_resources()}
    assert {"configmaps", "secrets", "namespaces"} <= names
    assert not {"pods", "nodes", "services", "deployments"} & names


def test_a_type_is_served_where_it_is_bound_and_until_it_is_not() -> None:
    place = Place()
    assert place.found("user") is None
    place.bind("user")
    assert place.found("user").identity == "identity"
    assert place.found("other") is None
    place.unbind("user")
    assert place.found("user") is None


def test_clusters_that_bind_the_same_share_their_types() -> None:
    place = Place()
    place.bind("one")
    place.bind("two")
    assert place.catalogue.types("one") is place.catalogue.types("two")
    for cluster in ("one", "two"):
        place.unbind(cluster)
    assert not any(place.catalogue._by_binding), "nobody can have them any more"


def test_a_bound_type_is_found_with_its_own_identity_and_with_no_other() -> None:
    place = Place()
    place.bind("user")
    assert place.found("user", "widgets:identity") is not None
    assert place.found("user", "widgets:another") is None
    assert place.found("user", "widgets:") is not None


def test_a_bound_type_hides_a_local_one_of_its_name() -> None:
    place = Place()
    place.define("user")
    assert place.found("user").identity == ""
    place.bind("user")
    assert place.found("user").identity == "identity"


def test_nobody_serves_a_type_of_their_own_in_place_of_the_systems() -> None:
    place = Place()
    own = {each.info.group_resource for each in system_resources()}
    place.define("user", "apis.kcp.io")
    served = [r for r in place.catalogue.types("user").resources if r.info.group == "apis.kcp.io"]
    assert own
    assert [r.info.resource for r in served].count("apibindings") == 1


def test_a_binding_that_goes_has_its_types_end() -> None:
    place = Place()
    place.bind("user", deletionTimestamp="2030-01-01T00:00:00Z")
    assert place.found("user").terminating


def test_across_all_clusters_a_type_is_read_by_its_identity_or_by_its_metadata() -> None:
    place = Place()
    place.bind("user")
    everywhere = place.catalogue.types("*")
    known = everywhere.find("example.io", "v1", "widgets:identity")
    assert known is not None
    assert known.identity == "identity"
    assert everywhere.find("example.io", "v1", "widgets:another") is None
    plain = everywhere.find("example.io", "v1", "widgets")
    assert plain is not None
    assert plain.identity == ANY_IDENTITY
    assert everywhere.find("", "v1", "configmaps") is not None


def test_what_a_cluster_defines_is_known_across_all_of_them_at_once() -> None:
    place = Place()
    assert place.catalogue.types("*").find("local.example", "v1", "widgets") is None
    place.define("user", "local.example")
    assert place.catalogue.types("*").find("local.example", "v1", "widgets") is not None


def test_shards_are_roots() -> None:
    place = Place()
    shards = ("core.kcp.io", "v1alpha1", "shards")
    assert place.catalogue.types("root").find(*shards) is not None
    assert place.catalogue.types("user").find(*shards) is None


def test_who_am_i_is_answered_and_not_announced() -> None:
    types = Place().catalogue.types("user")
    assert types.find("authentication.k8s.io", "v1", "selfsubjectreviews") is not None
    assert "selfsubjectreviews" not in {each.info.resource for each in types.resources}
