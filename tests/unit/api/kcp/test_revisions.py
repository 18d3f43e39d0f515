"""Revisions are refused where they are malformed, and whenever they would change."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skerry.api.edge import PLACEMENT_REVISIONS, REVISION_CONTENTS
from skerry.api.edge_categories import Category, category_of
from skerry.api.kcp import edge
from skerry.api.objects import Object
from skerry.logic.machinery import crd
from skerry.logic.machinery.rbac.bootstrap import bootstrap_objects

_KINDS = {each["spec"]["names"]["kind"]: each for each in edge.definitions()}
[_REVISION] = crd.resources_of(_KINDS["PlacementRevision"])
[_CONTENT] = crd.resources_of(_KINDS["RevisionContent"])
_ITEM = {"group": "", "resource": "configmaps", "namespace": "shop", "name": "c", "digest": "ab"}


def revision(**spec: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "PlacementRevision",
        "metadata": {"name": "web-1", "resourceVersion": "1"},
        "spec": {
            "placement": "web",
            "number": 1,
            "digest": "9f",
            "items": [_ITEM],
            "inputs": {"what": "77"},
            "page": {"number": 1, "of": 1},
            **spec,
        },
    }


def content(**found: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "RevisionContent",
        "metadata": {"name": "ab", "resourceVersion": "1"},
        "content": {"kind": "Secret", "data": {"k": "dg=="}, **found},
    }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"number": 0}, "spec.number"),
        ({"placement": ""}, "spec.placement"),
        ({"digest": "XY"}, "spec.digest"),
        ({"page": {"number": 0, "of": 1}}, "spec.page.number"),
        ({"items": [{**_ITEM, "digest": "../x"}]}, "spec.items[0].digest"),
        ({"items": [_ITEM] * 2001}, "spec.items"),
        ({"causes": [{"item": _ITEM}] * 21}, "spec.causes"),
        ({"inputs": {}}, "spec.inputs.what"),
    ],
)
def test_what_is_malformed_is_named(spec: Object, field: str) -> None:
    found = "; ".join(map(str, _REVISION.validate_create(copy.deepcopy(revision(**spec)))))
    assert field in found


def test_a_revision_is_taken_and_never_changed() -> None:
    assert not _REVISION.validate_create(revision())
    assert not _REVISION.validate_update(revision(), revision())
    changes: list[Object] = [{"number": 2}, {"items": []}, {"causesOmitted": 3}]
    for change in changes:
        assert _REVISION.validate_update(revision(**change), revision())


def test_a_content_is_taken_and_never_changed() -> None:
    assert not _CONTENT.validate_create(content())
    assert not _CONTENT.validate_update(content(), content())
    assert _CONTENT.validate_update(content(data={"k": "eA=="}), content())
    assert _CONTENT.validate_update(content(more=1), content())


def test_a_revision_of_the_largest_size_is_compared_within_what_a_server_allows() -> None:
    everything = revision(items=[{**_ITEM, "name": f"c{n}"} for n in range(2000)])
    assert not _REVISION.validate_update(copy.deepcopy(everything), everything)


def test_neither_kind_ever_travels() -> None:
    for each in (PLACEMENT_REVISIONS, REVISION_CONTENTS):
        assert category_of(each.group_resource) is Category.NOT_FOR_EDGE


def test_no_role_but_the_administrators_reads_contents() -> None:
    reading = [
        role["metadata"]["name"]
        for role in bootstrap_objects()
        for rule in role.get("rules") or ()
        if {"*", REVISION_CONTENTS.group} & set(rule.get("apiGroups") or ())
        and {"*", REVISION_CONTENTS.resource} & set(rule.get("resources") or ())
        and {"*", "get", "list", "watch"} & set(rule["verbs"])
    ]
    controllers = {each for each in reading if each.startswith("system:")}
    assert set(reading) - controllers == {"cluster-admin"}
