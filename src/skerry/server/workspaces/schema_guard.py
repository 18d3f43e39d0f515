"""Rules that take objects to be of the form their schema asks for.

Objects are judged after admission, for admission completes them. So a rule may meet anything that
is JSON: a list where there should be an object, no name. Rather than have every rule look twice
at every member, what trips over an object has it judged at once: if it is not of its form, that
is the answer; if it is, the rule is wrong and says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.server.admission.operation import Admission, Operation
from skerry.server.preparation.parts import part_of
from skerry.server.preparation.prepare import TRIPPED, refuse_invalid


class SchemaGuard:
    """Applies rules in order."""

    def __init__(self, rules: Sequence[Admission]) -> None:
        self._rules = tuple(rules)

    async def admit(self, operation: Operation) -> None:
        try:
            for rule in self._rules:
                await rule.admit(operation)
        except TRIPPED:
            if operation.verb != "DELETE":
                call = operation.call
                part = part_of(call.resource, operation.subresource)
                refuse_invalid(call, operation.obj, operation.old, part)
            raise
