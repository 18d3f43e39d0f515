"""What EdgePlacements are refused or warned for beyond their schema."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import REPORTED_STATES
from skerry.api.kcp import edge
from skerry.api.objects import Object
from skerry.logic.fleet.type_rules import with_type_rules
from skerry.logic.machinery import crd

_KIND = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "EdgePlacement")
[_SERVED] = map(with_type_rules, crd.resources_of(_KIND))
_CONTRADICTION = {"reportedState": "Aggregate", "wantSingletonReportedState": True}


def placement(**spec: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "p"},
        "spec": {"locationSelectors": [{}], **spec},
    }


def test_a_placement_whose_fields_contradict_each_other_is_refused() -> None:
    [error] = _SERVED.validate_create(placement(**_CONTRADICTION))
    assert error.field == "spec.reportedState"
    assert "spec.wantSingletonReportedState" in error.message
    assert not _SERVED.validate_create(placement(reportedState="Aggregate"))


def test_only_a_change_of_the_spec_is_judged() -> None:
    stored = placement(**_CONTRADICTION)
    relabelled = {**stored, "metadata": {"name": "p", "labels": {"a": "b"}}}
    assert not _SERVED.validate_update(relabelled, stored)
    assert _SERVED.validate_update(stored, placement(reportedState="Aggregate"))


@pytest.mark.parametrize("said", REPORTED_STATES)
def test_the_schema_accepts_what_the_code_knows(said: str) -> None:
    assert not _SERVED.validate_create(placement(reportedState=said))


@pytest.mark.parametrize("said", ["", "aggregate", "All", 1])
def test_the_schema_refuses_any_other_state(said: object) -> None:
    errors = _SERVED.validate_create(placement(reportedState=said))
    assert [error.field for error in errors] == ["spec.reportedState"]


def test_a_selector_that_nothing_satisfies_is_accepted_with_a_warning() -> None:
    both = [{"key": "a", "operator": op} for op in ("Exists", "DoesNotExist")]
    obj = placement(locationSelectors=[{"matchExpressions": both}])
    assert not _SERVED.validate_create(obj)
    assert _SERVED.warnings(obj)
