"""Workspaces and their types are those of root's export, whatever else has their names.

Anybody may define or export a type called ``workspaces.tenancy.kcp.io`` and use it where root's is
not bound. Its objects are objects, no more: nothing comes into being with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.server.admission.operation import Admission, Operation
from skerry.server.workspaces.state import TENANCY, HubState


class Genuine:
    """Applies rules in order, but not to types that only have the names of root's."""

    def __init__(self, state: HubState, rules: Sequence[Admission]) -> None:
        self._state = state
        self._rules = tuple(rules)

    async def admit(self, operation: Operation) -> None:
        resource = operation.call.resource
        if resource.info.group == TENANCY and resource.identity != self._state.tenancy_identity:
            return
        for rule in self._rules:
            await rule.admit(operation)
