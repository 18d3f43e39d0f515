"""LimitRanges, as pods and claims are created."""

from __future__ import annotations

from typing import ClassVar

from skerry.api.errors import Forbidden
from skerry.logic.machinery.limits import apply_defaults, violations
from skerry.server.admission.operation import Operation
from skerry.server.observed import ObservedObjects

_LIMITED = frozenset({("", "pods"), ("", "persistentvolumeclaims")})


class LimitRanger:
    """Defaults and bounds what containers and claims ask for."""

    TYPES: ClassVar = _LIMITED

    def __init__(self, ranges: ObservedObjects) -> None:
        self._ranges = ranges

    async def admit(self, operation: Operation) -> None:
        if operation.verb != "CREATE" or operation.type not in _LIMITED or operation.subresource:
            return
        call = operation.call
        found = self._ranges.within(call.info.cluster, call.namespace)
        if not found:
            return
        ranges = [found[name] for name in sorted(found)]
        if operation.type == ("", "pods"):
            apply_defaults(operation.obj, ranges)
        broken = violations(operation.obj, ranges)
        if broken:
            why = broken[0] if len(broken) == 1 else f"[{', '.join(broken)}]"
            group, resource = operation.type
            name = operation.obj["metadata"].get("name", "")
            raise Forbidden.of(group, resource, name, why)
