"""A malformed Rollout is refused, and the refusal names the field; a small one is complete."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skerry.api.kcp import edge
from skerry.api.objects import Object
from skerry.logic.fleet.type_rules import with_type_rules
from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.schema.defaulting import apply_defaults


def served(kind: str) -> Resource:
    found = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == kind)
    [resource] = map(with_type_rules, crd.resources_of(found))
    return resource


_ROLLOUTS, _APPROVALS = served("Rollout"), served("RolloutApproval")


def rollout(**spec: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def errors(resource: Resource, obj: Object) -> str:
    return "; ".join(str(error) for error in resource.validate_create(copy.deepcopy(obj)))


def waves(*waves: Object) -> Object:
    named = [{"name": f"w{number}", **wave} for number, wave in enumerate(waves)]
    return {"waves": named}


RING = {"matchLabels": {"ring": "canary"}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (waves({"until": 0}), "spec.waves[0].until"),
        (waves({"until": "0%"}), "spec.waves[0].until"),
        (waves({"until": "101%"}), "spec.waves[0].until"),
        (waves({"until": "5"}), "spec.waves[0].until"),
        (waves({"until": 3}, {"until": 3}), "spec.waves[1].until"),
        (waves({"until": "50%"}, {"until": "20%"}), "spec.waves[1].until"),
        (waves({}, {"until": "20%"}), "spec.waves[1].until"),
        (waves({"until": 3, "selector": RING}, {"until": 2, "selector": RING}), "waves[1].until"),
        (waves({"soak": "soon"}), "spec.waves[0].soak"),
        (waves({"soak": "-1s"}), "spec.waves[0].soak"),
        (waves({"spreadBy": ["a b"]}), "spec.waves[0].spreadBy[0]"),
        (waves({"selector": {"matchLabels": {"-": "x"}}}), "spec.waves[0].selector"),
        ({"waves": [{"name": "Early"}]}, "spec.waves[0].name"),
        ({"waves": [{"name": "a"}, {"name": "a"}]}, "spec.waves[1]"),
        ({"pace": {"concurrency": 0}}, "spec.pace.concurrency"),
        ({"judge": {"failWhen": "reports.exists(r,"}}, "spec.judge.failWhen"),
        ({"judge": {"failWhen": "reports.size()"}}, "spec.judge.failWhen"),
        ({"judge": {"failWhen": "object.x"}}, "spec.judge.failWhen"),
        (
            {
                "judge": {
                    "failWhen": "reports.all(a, reports.all(b, reports.all(c, a == b && b == c)))"
                }
            },
            "spec.judge.failWhen",
        ),
        ({"judge": {"checks": [{"query": "q", "holds": "rows"}]}}, "spec.judge.checks[0].holds"),
        ({"judge": {"evidence": 0}}, "spec.judge.evidence"),
        ({"offline": {"policy": "Ignore"}}, "spec.offline.policy"),
        ({"onFailure": "Panic"}, "spec.onFailure"),
        ({"supersede": "Never"}, "spec.supersede"),
        ({"force": {"revision": 0, "reason": "x"}}, "spec.force.revision"),
        ({"force": {"revision": 40}}, "spec.force.reason"),
    ],
)
def test_a_malformed_rollout_is_refused_with_its_field(spec: Object, field: str) -> None:
    assert field in errors(_ROLLOUTS, rollout(**spec))


def test_the_example_of_the_documentation_is_accepted() -> None:
    spec = {
        "settle": {"mode": "Quiet", "quiet": "10s", "longest": "2m"},
        "waves": [
            {"name": "canary", "selector": RING, "until": 3, "soak": "30m"},
            {"name": "early", "until": "5%", "spreadBy": ["region"], "soak": "1h",
             "approval": True},
        ],
        "pace": {"concurrency": "10%", "maxUnavailable": "2%", "per": ["site"]},
        "judge": {
            "minReady": "60s",
            "failures": {"max": "1%", "above": 1},
            "evidence": 3,
            "failWhen": "reports.exists(r, r.restarts > 5)",
            "checks": [{"query": "web-errors", "holds": "rows.all(r, r.rate < 0.01)"}],
            "external": ["smoke"],
        },
        "force": {"revision": 40, "reason": "INC-77"},
    }  # fmt: skip
    assert not errors(_ROLLOUTS, rollout(**spec))


def test_an_empty_rollout_gets_every_default() -> None:
    obj = rollout()
    schema = _ROLLOUTS.schema
    assert schema is not None
    apply_defaults(schema, obj)
    assert obj["spec"]["pace"] == {"concurrency": "10%", "maxUnavailable": "10%"}
    assert obj["spec"]["judge"] == {"minReady": "30s", "deadline": "15m", "evidence": 1}
    assert obj["spec"]["offline"] == {"after": "5m", "policy": "Defer"}
    assert obj["spec"]["joining"] == {"concurrency": 50}
    assert obj["spec"]["onFailure"] == "Rollback"
    assert not errors(_ROLLOUTS, obj)


def test_what_an_approval_asks_cannot_be_changed() -> None:
    asked = {"rollout": "web", "revision": 42, "digest": "ab", "wave": "early"}
    obj: Object = {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "RolloutApproval",
        "metadata": {"name": "web-42-early", "resourceVersion": "1"},
        "spec": asked,
    }
    changed = {**obj, "spec": {**asked, "digest": "cd"}}
    found = "; ".join(map(str, _APPROVALS.validate_update(changed, obj)))
    assert "what is asked cannot be changed" in found
