"""Entries of an object that only the exporter of its type may add.

An object of a bound type lies in the workspace of its user, whose administrator may write there.
Some types have entries that give their writer something that is not the user's to give. Of those,
others may take entries away, which the exporter's controllers mend, and add none; where nobody
could mend it, they may take none away either.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from skerry.api.errors import Forbidden
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.server.admission.operation import Operation
from skerry.server.security.authorization import is_administrator
from skerry.server.workspaces.state import HubState
from skerry.server.workspaces.views import view_name


class ExporterOnly(NamedTuple):
    """Which entries of which type are the exporter's to add, and what others get for an answer.

    ``lasting``: nor may others take them away.
    """

    kind: GroupResource
    entries: Callable[[Object], AbstractSet[Hashable]]
    refusal: str
    lasting: bool = False


class ExporterEntries:
    """Refuses new entries, and the loss of lasting ones, by neither the hub nor the exporter."""

    def __init__(self, rule: ExporterOnly, state: HubState) -> None:
        self._rule = rule
        self._state = state

    async def admit(self, operation: Operation) -> None:
        rule = self._rule
        if operation.verb == "DELETE" or is_administrator(operation.call.user):
            return
        old, new = rule.entries(operation.old or {}), rule.entries(operation.obj)
        if new == old or (new < old and not rule.lasting):
            return
        if self._is_exporters(operation):
            return
        name = operation.obj["metadata"].get("name") or ""
        raise Forbidden.of(*rule.kind, name, rule.refusal)

    def _is_exporters(self, operation: Operation) -> bool:
        """Tell whether a write comes through the view of the export that the type is of."""
        view = operation.call.view
        if not view:
            return False
        bindings = self._state.bindings.get(operation.call.info.cluster) or {}
        return any(
            view == view_name(binding.export_cluster, binding.export_name)
            for binding in bindings.values()
            if any((each.group, each.resource) == self._rule.kind for each in binding.bound)
        )
