"""A DecisionRecord is checked when it is written, and never changes afterwards."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skerry.api.edge import CENTRAL_GROUPS, DECISION_RECORDS
from skerry.api.kcp import edge
from skerry.api.kcp.history import MAX_CAUSES, MAX_NAMED
from skerry.api.objects import Object
from skerry.logic.machinery import crd

_KIND = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "DecisionRecord")
[_SERVED] = crd.resources_of(_KIND)


def record(**fields: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "DecisionRecord",
        "metadata": {"name": "web-000000000007-0000-5c1f2ab0"},
        "time": "2026-09-01T14:05:03.120Z",
        "placement": {"name": "web", "uid": "u"},
        "change": "Joined",
        "by": {"controller": "edge-scheduler"},
        **fields,
    }


def errors(obj: Object) -> str:
    return "; ".join(str(error) for error in _SERVED.validate_create(copy.deepcopy(obj)))


def test_the_definition_is_one_that_a_server_accepts() -> None:
    kind = copy.deepcopy(_KIND)
    crd.default_crd(kind)
    assert crd.validate_crd(kind) == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"change": "Moved"}, "change"),
        ({"time": "yesterday"}, "time"),
        ({"placement": {"name": "web"}}, "placement.uid"),
        ({"destinations": {"count": -1}}, "destinations.count"),
        ({"destinations": {"count": 1, "slots": "%%"}}, "destinations.slots"),
        ({"previous": "short"}, "previous"),
        ({"page": {"number": 0, "of": 1}}, "page.number"),
        ({"otherCauses": [{"kind": "Location", "name": "l"}] * MAX_CAUSES}, "otherCauses"),
        (
            {
                "destinations": {
                    "count": MAX_NAMED + 1,
                    "named": [{"cluster": "c", "location": "l", "syncTarget": "t", "uid": "u"}]
                    * (MAX_NAMED + 1),
                }
            },
            "destinations.named",
        ),
    ],
)
def test_a_malformed_record_is_refused_by_field(fields: Any, field: str) -> None:
    assert errors(record()) == ""
    assert field in errors(record(**fields))


@pytest.mark.parametrize(
    "edit",
    [
        {"change": "Left"},
        {"time": "2026-09-01T14:05:04Z"},
        {"previous": "0" * 32},
        {"reason": {"code": "Other"}},
        {"to": 3},
    ],
)
def test_no_field_of_a_record_can_be_changed_or_added(edit: Any) -> None:
    old = record()
    [error] = _SERVED.validate_update({**old, **edit}, old)
    assert "never changes" in error.message
    [error] = _SERVED.validate_update(old, {**old, **edit})
    assert "never changes" in error.message


def test_metadata_of_a_record_may_change_so_that_finalizers_can_be_removed() -> None:
    old = record()
    new = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert _SERVED.validate_update(new, old) == []


def test_records_are_never_placed() -> None:
    assert DECISION_RECORDS.group in CENTRAL_GROUPS
