"""A malformed PlacementGuard is refused, and the refusal names the field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skerry.api.kcp import edge
from skerry.api.objects import Object
from skerry.logic.fleet.type_rules import with_type_rules
from skerry.logic.machinery import crd
from skerry.logic.machinery.schema.defaulting import apply_defaults

_KIND = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "PlacementGuard")
[_SERVED] = map(with_type_rules, crd.resources_of(_KIND))

_FREEZE = {"name": "weekend", "schedule": "0 18 * * 5", "duration": "60h", "stops": ["Leaving"]}
_STORY = {
    "placements": {"workspaces": {"matchLabels": {"env": "prod"}}, "selector": {}},
    "budgets": [
        {"of": "DestinationsRemoved", "max": 50, "percent": 5, "window": "10m"},
        {"of": "DestinationsAdded", "max": 1000, "action": "Warn"},
        {"of": "ObjectsRemoved", "max": 20, "action": "Confirm"},
        {"of": "ContentChanged", "percent": 100, "action": "Warn"},
    ],
    "protect": [
        {
            "kind": "Namespace",
            "selector": {"matchLabels": {"critical": "yes"}},
            "against": ["Delete", "Deselect"],
        },
        {"kind": "Location", "names": ["hq"], "against": ["Delete", "Relabel"]},
    ],
    "freezes": [{**_FREEZE, "timeZone": "label:tz", "locations": {"matchLabels": {"t": "s"}}}],
    "bypass": [{"group": "incident-commanders"}],
    "mode": "Enforce",
}


def guard(**spec: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "PlacementGuard",
        "metadata": {"name": "g"},
        "spec": spec,
    }


def errors(obj: Object) -> str:
    return "; ".join(str(error) for error in _SERVED.validate_create(copy.deepcopy(obj)))


def budget(**fields: Any) -> Object:
    return {"budgets": [{"of": "DestinationsRemoved", **fields}]}


def freeze(**fields: Any) -> Object:
    return {"freezes": [{**_FREEZE, **fields}]}


def test_the_guard_of_the_story_is_valid() -> None:
    assert errors(guard(**_STORY)) == ""


def test_a_guard_enforces_and_a_budget_asks_unless_they_say_otherwise() -> None:
    obj = guard(**budget(max=1))
    apply_defaults(_SERVED.schema, obj)
    assert obj["spec"]["mode"] == "Enforce"
    assert obj["spec"]["budgets"][0]["action"] == "Confirm"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"mode": "Watch"}, "spec.mode"),
        (budget(), "spec.budgets[0]"),
        (budget(max=-1), "spec.budgets[0].max"),
        (budget(percent=101), "spec.budgets[0].percent"),
        (budget(max=1, window="0s"), "spec.budgets[0].window"),
        (budget(max=1, window="500ms"), "spec.budgets[0].window"),
        (budget(max=1, window="169h"), "spec.budgets[0].window"),
        (budget(max=1, window="7d"), "spec.budgets[0].window"),
        (budget(max=1, action="Refuse"), "spec.budgets[0].action"),
        ({"budgets": [{"of": "Everything", "max": 1}]}, "spec.budgets[0].of"),
        (freeze(schedule="at six"), "spec.freezes[0].schedule"),
        (freeze(schedule="0 25 * * 5"), "spec.freezes[0].schedule"),
        (freeze(schedule="@every 1h"), "spec.freezes[0].schedule"),
        (freeze(timeZone="Europe/Atlantis"), "spec.freezes[0].timeZone"),
        (freeze(timeZone="label:"), "spec.freezes[0].timeZone"),
        (freeze(duration="169h"), "spec.freezes[0].duration"),
        (freeze(duration="0s"), "spec.freezes[0].duration"),
        (freeze(duration="a while"), "spec.freezes[0].duration"),
        (freeze(stops=[]), "spec.freezes[0].stops"),
        (freeze(stops=["Everything"]), "spec.freezes[0].stops[0]"),
        ({"protect": [{"kind": "Location", "against": ["Delete"]}]}, "spec.protect[0]"),
        ({"protect": [{"kind": "Pod", "names": ["a"], "against": ["Delete"]}]}, "protect[0].kind"),
        ({"bypass": [{}]}, "spec.bypass[0]"),
        ({"bypass": [{"user": "a", "group": "b"}]}, "spec.bypass[0]"),
        ({"placements": {"selector": {"matchLabels": {"a b": "c"}}}}, "spec.placements.selector"),
    ],
)
def test_what_cannot_be_meant_is_refused(spec: Object, field: str) -> None:
    assert field in errors(guard(**spec))


def test_a_protected_object_need_not_exist() -> None:
    protect = [{"kind": "Location", "names": ["nowhere"], "against": ["Delete"]}]
    assert errors(guard(protect=protect)) == ""


def test_a_bypass_for_everybody_is_accepted_with_a_warning() -> None:
    obj = guard(**budget(max=1), bypass=[{"group": "system:authenticated"}])
    assert errors(obj) == ""
    assert list(_SERVED.warnings(obj)) == [
        "spec.bypass[0].group: system:authenticated lets nearly everybody pass"
    ]


def test_a_guard_that_guards_nothing_is_accepted_with_a_warning() -> None:
    assert "guards nothing" in "; ".join(_SERVED.warnings(guard()))
