"""Which rules are asked about which write."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from skerry.kit.invariant import present
from skerry.server.admission.operation import Chain, Operation
from skerry.server.catalogue import TypeSet, builtin_types
from skerry.server.http.message import Request
from skerry.server.request.call import Call
from skerry.server.request.info import RequestInfo
from skerry.server.user import User

TYPES = TypeSet(builtin_types())


class Everything:
    """A rule about all writes."""

    def __init__(self, name: str, asked: list[str]) -> None:
        self._name = name
        self._asked = asked

    async def admit(self, operation: Operation) -> None:
        self._asked.append(self._name)


class OfPods(Everything):
    TYPES: ClassVar = frozenset({("", "pods")})


class OfPodsAndClaims(Everything):
    TYPES: ClassVar = frozenset({("", "pods"), ("", "persistentvolumeclaims")})


def writing(resource: str, group: str = "") -> Operation:
    found = present(TYPES.find("", "v1", "configmaps"), "every server has ConfigMaps")
    info = replace(found.info, group=group, resource=resource)
    call = Call(Request("", ""), RequestInfo("", "create"), User("ann"),
                replace(found, info=info), TYPES)  # fmt: skip
    return Operation(call, "CREATE", {"metadata": {}})


async def test_rules_are_asked_in_order_about_the_types_they_name() -> None:
    asked: list[str] = []
    chain = Chain(
        [
            OfPods("first", asked),
            Everything("second", asked),
            OfPodsAndClaims("third", asked),
            Everything("last", asked),
        ]
    )
    for operation, wanted in (
        (writing("pods"), ["first", "second", "third", "last"]),
        (writing("persistentvolumeclaims"), ["second", "third", "last"]),
        (writing("configmaps"), ["second", "last"]),
        (writing("pods", "example.org"), ["second", "last"]),
    ):
        asked.clear()
        await chain.admit(operation)
        assert asked == wanted
