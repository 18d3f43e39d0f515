"""Rules of workspaces are for root's types, and not for namesakes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skerry.server.admission.operation import Operation
from skerry.server.workspaces.genuine import Genuine
from skerry.server.workspaces.state import TENANCY
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of


class Hub:
    tenancy_identity = "of root"


class Rule:
    def __init__(self, name: str, seen: list[str]) -> None:
        self._name, self._seen = name, seen

    async def admit(self, operation: Operation) -> None:
        self._seen.append(self._name)


async def seen(group: str, identity: str) -> list[str]:
    found: list[str] = []
    base = resource("configmaps")
    kind = replace(base, info=replace(base.info, group=group), identity=identity)
    state: Any = Hub()
    rules = Genuine(state, [Rule("first", found), Rule("second", found)])
    await rules.admit(Operation(call_of(kind), "CREATE", {"metadata": {"name": "w"}}))
    return found


async def test_rules_are_applied_in_order() -> None:
    assert await seen(TENANCY, "of root") == ["first", "second"]
    assert await seen("apps", "") == ["first", "second"]


async def test_a_type_that_only_has_the_name_is_left_alone() -> None:
    assert await seen(TENANCY, "of somebody") == []
    assert await seen(TENANCY, "") == []
