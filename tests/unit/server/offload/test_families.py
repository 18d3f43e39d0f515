"""Types that a worker builds again: each family once, the latest used of them kept."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import Resource
from skerry.server.catalogue import builtin_types
from skerry.server.offload import families
from skerry.server.offload.families import Families, type_ref
from skerry.server.offload.messages import TypeRef
from tests.kit.machinery.objects import resource
from tests.kit.server.objects import definition


def thing(plural: str = "things") -> Resource:
    made = definition(plural, plural[:-1].title())
    made["metadata"]["resourceVersion"] = "1"
    crd.default_crd(made)
    return crd.resources_of(made)[0]


def reference(kind: Resource, *, content: bool = True) -> TypeRef:
    found = type_ref(kind)
    assert found is not None
    assert kind.family is not None
    text = kind.family.text if content else None
    return TypeRef(found.builder, found.key, found.info, found.identity, text)


def test_a_type_is_asked_for_until_its_content_was_sent_and_then_known() -> None:
    known, kind = Families(), thing()
    without = reference(kind, content=False)
    assert known.missing([without, without]) == [without.key]
    assert known.missing([reference(kind)]) == []
    assert known.missing([without]) == []
    assert known.resolve(without).info == kind.info


def test_a_type_that_is_built_again_judges_as_the_one_it_was_built_from() -> None:
    known, kind = Families(), thing()
    known.missing([reference(kind)])
    built = known.resolve(reference(kind))
    for size in (0, 3):
        obj = {"metadata": {"name": "a"}, "spec": {"size": size}}
        assert bool(built.validate_create(obj)) == bool(kind.validate_create(obj)) == (size == 0)


def test_where_a_type_is_served_with_fewer_verbs_it_is_resolved_with_those() -> None:
    known, kind = Families(), thing()
    narrow = reference(replace(kind, info=replace(kind.info, verbs=("get",))))
    known.missing([narrow])
    assert known.resolve(narrow).info.verbs == ("get",)


def test_one_family_of_two_identities_is_built_once_and_distinguished() -> None:
    known, kind = Families(), thing()
    one, two = (reference(replace(kind, identity=each)) for each in ("i1", "i2"))
    assert known.missing([one]) == []
    assert known.missing([TypeRef(two.builder, two.key, two.info, two.identity)]) == []
    assert (known.resolve(one).identity, known.resolve(two).identity) == ("i1", "i2")


def test_kubernetes_own_types_are_those_of_this_version() -> None:
    known = Families()
    pods = next(each for each in builtin_types() if each.info.resource == "pods")
    known.missing([reference(pods)])
    assert known.resolve(reference(pods)).info.kind == "Pod"


def test_a_type_without_a_family_is_no_other_processs_business() -> None:
    assert type_ref(resource("pods")) is None


def test_only_what_people_define_is_extended() -> None:
    seen: list[str] = []

    def extend(kind: Resource) -> Resource:
        seen.append(kind.info.resource)
        return kind

    known = Families(extend)
    pods = next(each for each in builtin_types() if each.info.resource == "pods")
    known.missing([reference(pods), reference(thing())])
    assert seen == ["things"]


def test_the_least_used_families_go_when_they_are_too_large_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = [reference(thing(f"{name}s")) for name in ("a", "b", "c")]
    size = len(kinds[0].content or b"")
    monkeypatch.setattr(families, "_MAX_BYTES", 2 * size + size // 2)
    monkeypatch.setattr(families, "_MIN_FAMILIES", 1)
    known = Families()
    known.missing(kinds[:2])
    known.resolve(kinds[0])
    bare = [TypeRef(each.builder, each.key, each.info) for each in kinds]
    assert known.missing(bare[:1]) == []  # used again, so the other is the one to go
    known.missing(kinds[2:])
    assert known.missing(bare) == [kinds[1].key]
    assert orjson.loads(kinds[1].content or b"")
