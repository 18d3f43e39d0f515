"""A rule that trips over an object has it judged: the object is wrong, or the rule is."""

from __future__ import annotations

import pytest

from skerry.api.errors import Forbidden, Invalid
from skerry.api.objects import Object
from skerry.server.admission.operation import Operation, Verb
from skerry.server.workspaces.schema_guard import SchemaGuard
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of

MAPS = resource("configmaps")
GOOD: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "n"},
}
BAD: Object = {**GOOD, "data": {"not a key": "v"}}


class Rule:
    """Raises what it is given, and notes that it was asked."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.asked = 0

    async def admit(self, operation: Operation) -> None:
        self.asked += 1
        if self._error is not None:
            raise self._error


async def admit(obj: Object, *rules: Rule, verb: Verb = "CREATE") -> None:
    call = call_of(MAPS, namespace="n", name="a")
    await SchemaGuard(rules).admit(Operation(call, verb, obj))


async def test_rules_are_asked_in_turn_and_what_they_refuse_is_refused() -> None:
    first, last = Rule(), Rule()
    await admit(BAD, first, last)
    assert (first.asked, last.asked) == (1, 1)
    with pytest.raises(Forbidden):
        await admit(GOOD, Rule(Forbidden("no")), last)
    assert last.asked == 1


@pytest.mark.parametrize(
    "error", [KeyError("spec"), TypeError("x"), AttributeError("x"), IndexError(), ValueError("x")]
)
async def test_what_trips_over_an_object_that_is_not_of_its_form_is_answered_with_that(
    error: Exception,
) -> None:
    with pytest.raises(Invalid, match="not a key"):
        await admit(BAD, Rule(error))


async def test_a_rule_that_trips_over_a_good_object_is_wrong_and_says_so() -> None:
    with pytest.raises(KeyError):
        await admit(GOOD, Rule(KeyError("spec")))
    with pytest.raises(KeyError):
        await admit(BAD, Rule(KeyError("spec")), verb="DELETE")
