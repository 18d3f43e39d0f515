"""What may be written into FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.flow_control import RULES

GROUP = "flowcontrol.apiserver.k8s.io"
USER = {"kind": "User", "user": {"name": "ann"}}
PATHS = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/api/*"]}
THINGS = {"verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]}


def wrong(resource: str, obj: Object) -> list[str]:
    rules = RULES[GroupResource(GROUP, resource)]
    rules.default(obj)
    return [
        f"{each.field.removeprefix('spec.')} {each.type.removeprefix('FieldValue')}"
        for each in rules.validate_create(obj)
    ]


def schema(rule: Any = None, name: str = "s", **spec: Any) -> Object:
    rules = [{"subjects": [USER], "nonResourceRules": [PATHS], **(rule or {})}]
    wanted = {"priorityLevelConfiguration": {"name": "low"}, "rules": rules, **spec}
    return {"metadata": {"name": name}, "spec": wanted}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (schema(), []),
        (schema({"resourceRules": [THINGS]}), []),
        (schema(matchingPrecedence=-1), ["matchingPrecedence Invalid"]),
        (schema(matchingPrecedence=10_001), ["matchingPrecedence Invalid"]),
        (schema(matchingPrecedence=1), ["matchingPrecedence Invalid"]),
        (schema(name="exempt", matchingPrecedence=1), []),
        (schema(distinguisherMethod={"type": "ByMood"}), ["distinguisherMethod.type NotSupported"]),
        (schema(priorityLevelConfiguration={}), ["priorityLevelConfiguration.name Required"]),
        (schema({"subjects": []}), ["rules[0].subjects Required"]),
        (schema({"nonResourceRules": []}), ["rules[0] Required"]),
        (schema({"subjects": [{"kind": "Robot"}]}), ["rules[0].subjects[0].kind NotSupported"]),
        (schema({"subjects": [{"kind": "User"}]}), ["rules[0].subjects[0].user Required"]),
        (
            schema({"subjects": [{**USER, "group": {"name": "g"}}]}),
            ["rules[0].subjects[0].group Forbidden"],
        ),
        (
            schema({"subjects": [{"kind": "ServiceAccount", "serviceAccount": {"name": "*"}}]}),
            ["rules[0].subjects[0].serviceAccount.namespace Required"],
        ),
        (
            schema({"nonResourceRules": [{"verbs": ["*", "get"], "nonResourceURLs": ["*"]}]}),
            ["rules[0].nonResourceRules[0].verbs Invalid"],
        ),
        (
            schema({"nonResourceRules": [{"verbs": ["fly"], "nonResourceURLs": ["a", "/a//b"]}]}),
            [
                "rules[0].nonResourceRules[0].verbs NotSupported",
                "rules[0].nonResourceRules[0].nonResourceURLs[0] Invalid",
                "rules[0].nonResourceRules[0].nonResourceURLs[1] Invalid",
            ],
        ),
        (
            schema({"resourceRules": [{**THINGS, "namespaces": []}]}),
            ["rules[0].resourceRules[0].namespaces Required"],
        ),
        (schema({"resourceRules": [{**THINGS, "namespaces": [], "clusterScope": True}]}), []),
    ],
)
def test_a_flow_schema_says_whose_requests_go_where(found: Object, expected: list[str]) -> None:
    assert wrong("flowschemas", found) == expected


def level(name: str = "low", **spec: Any) -> Object:
    limited = {"limitResponse": {"type": "Reject"}}
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited, **spec}}


def queuing(**numbers: int) -> Object:
    return level(limited={"limitResponse": {"type": "Queue", "queuing": numbers}})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (level(), []),
        (level("exempt"), ["type Invalid"]),
        (level(type="Exempt"), ["type Invalid", "limited Forbidden"]),
        (level("exempt", type="Exempt", limited=None, exempt={"lendablePercent": 5}), []),
        (level(type="Free"), ["type NotSupported"]),
        (level(limited=None), ["limited Required"]),
        (level(exempt={}), ["exempt Forbidden"]),
        (
            level(limited={"lendablePercent": 101, "limitResponse": {"type": "Reject"}}),
            ["limited.lendablePercent Invalid"],
        ),
        (level(limited={"limitResponse": {}}), ["limited.limitResponse.type NotSupported"]),
        (queuing(), []),
        (queuing(handSize=9, queues=8), ["limited.limitResponse.queuing.handSize Invalid"]),
        (queuing(handSize=40, queues=512), ["limited.limitResponse.queuing.handSize Invalid"]),
        (queuing(queues=-1), [
            "limited.limitResponse.queuing.queues Invalid",
            "limited.limitResponse.queuing.handSize Invalid",
        ]),
    ],
)  # fmt: skip
def test_a_priority_level_is_limited_or_exempt(found: Object, expected: list[str]) -> None:
    assert wrong("prioritylevelconfigurations", found) == expected
