"""Nobody hands out rights they do not hold."""

from __future__ import annotations

from typing import ClassVar

from skerry.kit.steps import in_turns
from skerry.logic.machinery.rbac.policy import GROUP
from skerry.server.admission.operation import Operation
from skerry.server.security.authorization import RESOURCES, RbacAuthorizer


class EscalationGuard:
    """Checks writes of roles and bindings against the writer's own rights."""

    TYPES: ClassVar = frozenset((GROUP, resource) for resource in RESOURCES.values())

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE" or operation.type not in self.TYPES:
            return
        call = operation.call
        checking = self._authorizer.check_write(
            call.user, call.info.cluster, operation.obj, operation.old
        )
        await in_turns(checking)
