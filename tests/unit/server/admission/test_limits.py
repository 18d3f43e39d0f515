"""LimitRanges fill in and bound what is created, and nothing else."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import pytest

from skerry.api.errors import Forbidden
from skerry.api.objects import Object
from skerry.server.admission.limits import LimitRanger
from skerry.server.admission.operation import Operation
from skerry.server.observed import ObservedObjects
from tests.kit.machinery.objects import pod, resource
from tests.kit.server.calls import call_of


def ranges(**item: Any) -> ObservedObjects:
    made = ObservedObjects("", "limitranges")
    limit = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **item}]}}
    made.by_place["root", "default"] = {"l": limit}
    return made


async def admitted(
    found: ObservedObjects,
    obj: Object,
    *,
    verb: Literal["CREATE", "UPDATE", "DELETE"] = "CREATE",
    subresource: str = "",
    kind: str = "pods",
    namespace: str = "default",
) -> Object:
    call = call_of(resource(kind), cluster="root", namespace=namespace)
    operation = Operation(call, verb, deepcopy(obj), subresource=subresource)
    await LimitRanger(found).admit(operation)
    return operation.obj


def asking(cpu: str) -> Object:
    resources = {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}
    return pod({"containers": [{"name": "c", "image": "i", "resources": resources}]})


async def test_what_a_container_leaves_out_is_filled_in() -> None:
    found = await admitted(ranges(default={"cpu": "1"}), pod())
    assert found["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}


async def test_more_than_the_bound_is_refused_with_all_reasons() -> None:
    with pytest.raises(Forbidden, match="maximum cpu usage per Container is 1, but limit is 2"):
        await admitted(ranges(max={"cpu": "1"}), asking("2"))
    both = ranges(max={"cpu": "1"}, min={"cpu": "3"})
    with pytest.raises(Forbidden, match=r"\[.*, .*\]"):
        await admitted(both, asking("2"))


@pytest.mark.parametrize(
    "options",
    [
        {"verb": "UPDATE"},
        {"subresource": "binding"},
        {"kind": "configmaps"},
        {"namespace": "other"},
    ],
)
async def test_everything_else_passes_untouched(options: Any) -> None:
    obj = asking("2")
    assert await admitted(ranges(max={"cpu": "1"}), obj, **options) == obj
