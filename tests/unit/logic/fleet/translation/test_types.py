"""What a workspace serves, by what is in it; and at which version types are written."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource, ResourceInfo
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.types import (
    ServedType,
    agreed_version,
    common_types,
    defined_type,
    workspace_types,
)
from skerry.logic.machinery.api_versions import ordered

SECRETS = GroupResource("", "secrets")
WIDGETS = GroupResource("example.io", "widgets")


def _info(group: str, version: str, resource: str, *verbs: str) -> ResourceInfo:
    return ResourceInfo(group, version, resource, resource.title(), True, verbs=verbs)


def _spec(*versions: tuple[str, bool], scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "group": "example.io",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": scope,
        "versions": [{"name": name, "served": served} for name, served in versions],
    }


def _definition(established: str = "True", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Established", "status": established}]
    return {
        "metadata": {"name": "widgets.example.io"},
        "spec": _spec(("v1", True), **spec),
        "status": {"conditions": conditions},
    }


def _binding(name: str, schema: str) -> dict[str, Any]:
    bound = {
        "group": "example.io",
        "resource": "widgets",
        "schema": {"name": schema, "identityHash": "id"},
    }
    status = {"apiExportClusterName": "exporter", "boundResources": [bound]}
    return {"metadata": {"name": name}, "status": status}


SCHEMAS = {("exporter", "s"): {"spec": _spec(("v1alpha1", True), ("v1", True), ("v2", False))}}


def test_common_types_are_those_that_can_be_watched_preferred_version_first() -> None:
    found = common_types(
        [
            _info("", "v1", "secrets", "list", "watch", "get"),
            _info("", "v1", "bindings", "create"),
            _info("g", "v2", "things", "list", "watch"),
            _info("g", "v1", "things", "list", "watch"),
        ]
    )
    assert [(each.resource, each.versions) for each in found] == [
        ("secrets", ("v1",)),
        ("things", ("v2", "v1")),
    ]


def test_a_bound_type_is_what_its_schema_says_under_the_identity_of_its_export() -> None:
    types = workspace_types((), [_binding("b", "s")], SCHEMAS, [])
    served = types.served[WIDGETS]
    assert served.versions == ("v1", "v1alpha1")
    assert served.identity == "id"
    assert served.definition == ObjectRef("", "apis.kcp.io", "apibindings", "", "b")
    assert served.namespaced
    assert not served.local


def test_a_bound_type_without_its_schema_is_unknown_not_absent() -> None:
    types = workspace_types((), [_binding("b", "lost")], SCHEMAS, [])
    assert WIDGETS not in types.served
    assert types.unknown == {WIDGETS}


def test_a_definition_counts_once_it_is_established() -> None:
    own = defined_type(_definition())
    assert own is not None
    assert own.local
    assert own.definition == ObjectRef(
        "", "apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.io"
    )
    assert defined_type(_definition("False")) is None
    assert defined_type({**_definition(), "status": {}}) is None


def test_common_types_come_before_bound_ones_and_those_before_local_ones() -> None:
    bound_and_local = workspace_types((), [_binding("b", "s")], SCHEMAS, [_definition()])
    assert bound_and_local.served[WIDGETS].identity == "id"
    common = (ServedType("example.io", "widgets", "Widget", True, ("v9",)),)
    everything = workspace_types(common, [_binding("b", "s")], SCHEMAS, [_definition()])
    assert everything.served[WIDGETS] is common[0]


def _served(*versions: str) -> ServedType:
    return ServedType("g", "r", "R", True, versions)


def test_a_version_all_prefer_is_taken_even_if_newer_ones_exist() -> None:
    found = agreed_version([_served("v1", "v2"), _served("v1", "v2")])
    assert found == ("v1", True)


def test_else_the_newest_that_all_serve_is_taken() -> None:
    found = agreed_version([_served("v2", "v1", "v1beta1"), _served("v1", "v1beta1")])
    assert found == ("v1", True)


def test_without_any_in_common_the_newest_of_all_is_taken_and_it_is_reported() -> None:
    assert agreed_version([_served("v1"), _served("v2alpha1")]) == ("v1", False)


VERSIONS = st.lists(st.sampled_from(["v1", "v2", "v1beta1", "v1alpha1"]), min_size=1, unique=True)


@given(st.lists(VERSIONS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_agreement_does_not_depend_on_the_order_of_contributors(
    lists: list[list[str]], random: Any
) -> None:
    types = [_served(*ordered(versions)) for versions in lists]
    shuffled = list(types)
    random.shuffle(shuffled)
    found = agreed_version(types)
    assert agreed_version(shuffled) == found
    assert found.shared == all(found.version in each.versions for each in types)
