"""A request on its way: the keys it means in the store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skerry.api.errors import Forbidden
from skerry.logic.machinery.resource import ANY_IDENTITY
from skerry.server.request.call import member
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of


def test_an_object_is_stored_by_type_cluster_namespace_and_name() -> None:
    call = call_of(cluster="root", namespace="n", name="a")
    key = call.key()
    assert (key.cluster, key.namespace, key.name) == ("root", "n", "a")
    assert call.key("b").name == "b"
    assert key.path().startswith(call.prefix)


def test_a_kind_of_the_cluster_has_no_namespace_whatever_the_path_says() -> None:
    call = call_of(resource("nodes"), namespace="n", name="a")
    assert call.namespace == call.key().namespace == ""


def test_a_collection_is_a_prefix_of_its_objects_and_of_no_others() -> None:
    here = call_of(cluster="root", namespace="n")
    there = call_of(cluster="root", namespace="n2", name="a")
    assert not there.key().path().startswith(here.prefix)
    assert call_of(cluster="root", namespace="n", name="a").key().path().startswith(here.prefix)


def test_every_cluster_is_a_prefix_of_all() -> None:
    every = call_of(cluster="*")
    assert call_of(cluster="root", namespace="n", name="a").key().path().startswith(every.prefix)


def test_objects_of_every_export_begin_alike() -> None:
    kind = resource("configmaps")
    bound = replace(kind, identity="abc")
    every = call_of(replace(kind, identity=ANY_IDENTITY), cluster="*")
    for each in (kind, bound):
        assert (
            call_of(each, cluster="root", namespace="n", name="a")
            .key()
            .path()
            .startswith(every.prefix)
        )
    assert (
        not call_of(bound, cluster="root", namespace="n", name="a")
        .key()
        .path()
        .startswith(call_of(kind, cluster="root").prefix)
    )


def test_what_is_missing_is_called_by_its_type_and_name() -> None:
    call = call_of(resource("deployments", "apps"), name="web")
    assert (call.group, call.kind) == ("apps", "Deployment")
    assert str(call.not_found()) == 'deployments.apps "web" not found'
    assert '"other"' in str(call.not_found("other"))


def test_nothing_more_is_allowed_unless_somebody_says() -> None:
    with pytest.raises(Forbidden, match="may not escalate"):
        call_of().require("escalate")


def test_a_way_that_ends_early_leads_to_nothing() -> None:
    assert member({"a": {"b": 1}}, "a", "b") == 1
    assert member({"a": [1]}, "a", "b") is None
    assert member({}, "a", "b") is None
