"""Which types are served where: definitions count in their own cluster, once established."""

from __future__ import annotations

from typing import Any

from skerry.api.keys import ObjectKey
from skerry.api.kinds import GroupVersion
from skerry.api.objects import Object
from skerry.logic.machinery import crd
from skerry.server.catalogue import CRD_GROUP, CRD_RESOURCE, Catalogue, TypeSet, builtin_types
from skerry.server.change import Change
from skerry.server.codec import encode
from skerry.store.base import Event, Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.crds import established
from tests.kit.machinery.objects import resource
from tests.kit.server.objects import definition, version

THINGS = ("example.org", "v1", "things")
BUILTIN = builtin_types()


def made(*versions: Object, **metadata: Any) -> Object:
    obj = definition(versions=list(versions) or None)
    crd.default_crd(obj)
    obj = established(obj)
    obj["metadata"].update(metadata)
    return obj


def key(cluster: str = "root") -> str:
    return ObjectKey(CRD_GROUP, CRD_RESOURCE, cluster, "", "things.example.org").path()


def change(obj: Object | None, revision: int = 5, cluster: str = "root") -> Change:
    value = None if obj is None else encode(obj)
    return Change(Event(revision, key(cluster), value, None, 0))


def test_a_definition_counts_in_its_own_cluster_and_until_it_goes() -> None:
    catalogue = Catalogue(BUILTIN)
    before = catalogue.types("root")
    assert before.find(*THINGS) is None
    catalogue.observe(change(made()))
    assert catalogue.types("root").find(*THINGS) is not None
    assert catalogue.types("away").find(*THINGS) is None
    assert before.find(*THINGS) is None, "a set of types never changes"
    assert catalogue.definition("root", "things.example.org") is not None
    catalogue.observe(change(None, 6))
    assert catalogue.types("root").find(*THINGS) is None
    assert catalogue.definitions("root") == ()


def test_a_definition_that_is_not_established_serves_nothing() -> None:
    catalogue = Catalogue(BUILTIN)
    catalogue.observe(change({**made(), "status": {}}))
    assert catalogue.types("root").find(*THINGS) is None
    assert len(catalogue.definitions("root")) == 1


def test_a_type_that_is_being_deleted_is_served_and_known_to_end() -> None:
    catalogue = Catalogue(BUILTIN)
    catalogue.observe(change(made(deletionTimestamp="2030-01-01T00:00:00Z")))
    found = catalogue.types("root").find(*THINGS)
    assert found is not None
    assert found.terminating


def test_clusters_that_define_nothing_share_one_set() -> None:
    catalogue = Catalogue(BUILTIN)
    assert catalogue.types("root") is catalogue.types("away")


def test_a_name_that_a_client_invents_leaves_nothing_behind() -> None:
    catalogue = Catalogue(BUILTIN)
    for number in range(100):
        assert catalogue.known_types(f"invented-{number}").find("", "v1", "pods") is not None
    assert not catalogue._sets


async def test_what_is_stored_is_read_and_forgotten_when_it_is_shown_anew() -> None:
    store, catalogue = MemoryStore("test"), Catalogue(BUILTIN)
    await store.commit([Write(key("a"), encode(made())), Write(key("b"), encode(made()))])
    await catalogue.load(store)
    assert catalogue.types("a").find(*THINGS)
    assert catalogue.types("b").find(*THINGS)
    catalogue.reset()
    assert catalogue.types("a").find(*THINGS) is None


def test_of_two_versions_each_has_the_other_and_content_is_visited_once() -> None:
    both = made(version("v1", storage=True), version("v2", storage=False))
    catalogue = Catalogue(BUILTIN)
    catalogue.observe(change(both))
    types = catalogue.types("root")
    first = types.find(*THINGS)
    assert first is not None
    assert [gvr.version for gvr in types.other_versions(first.info)] == ["v2"]
    assert types.other_versions(resource("pods").info) == ()
    assert [r.info.version for r in types.stored if r.info.resource == "things"] == ["v1"]


def test_types_are_found_by_kind_and_by_group_and_version() -> None:
    types = TypeSet(BUILTIN)
    assert types.by_kind["apps/v1", "Deployment"].info.resource == "deployments"
    served = types.by_group_version[GroupVersion("apps", "v1")]
    assert "deployments" in {each.info.resource for each in served}
    # Questions and scales are asked, not stored.
    assert not any("reviews" in each.info.resource for each in types.stored)
