"""Which patches a type takes, said to who sent another."""

from __future__ import annotations

from dataclasses import replace

from skerry.server.request.media import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC, unsupported
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of


def listed(custom: bool) -> list[str]:
    call = call_of(replace(resource("configmaps"), custom=custom))
    return str(unsupported(call)).rpartition(": ")[2].split(", ")


def test_only_built_in_kinds_take_strategic_merges() -> None:
    assert listed(custom=False) == [JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY]
    assert listed(custom=True) == [JSON_PATCH, MERGE_PATCH, APPLY]
