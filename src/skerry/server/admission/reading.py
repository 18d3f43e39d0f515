"""Objects that show their readers what others may not read.

Some objects name resources, and what is found of those comes into their status. Whoever writes such
an object must be allowed to read what it names, or the object would be a way around RBAC. It is
asked when the object is written: rights that are taken away later leave it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from skerry.api.errors import Forbidden
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.server.access import Attributes, Authorizer
from skerry.server.admission.operation import Operation

_VERBS: Final = ("get", "list")


class Named(NamedTuple):
    """Resources that an object names; an empty namespace stands for all."""

    group: str
    resource: str
    namespace: str


class ReadingRights:
    """Refuses who may not read what an object of one kind names."""

    def __init__(
        self,
        kind: GroupResource,
        named: Callable[[Object], Iterable[tuple[str, str, str]]],
        authorizer: Authorizer,
    ) -> None:
        self._kind = kind
        self._named = named
        self._authorizer = authorizer

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE" or operation.subresource:
            return
        before = set() if operation.old is None else set(self._named(operation.old))
        for found in self._named(operation.obj):
            if found not in before:
                self._check(operation, Named(*found))

    def _check(self, operation: Operation, found: Named) -> None:
        call = operation.call
        for verb in _VERBS:
            asked = Attributes(
                cluster=call.info.cluster,
                verb=verb,
                group=found.group,
                resource=found.resource,
                namespace=found.namespace,
            )
            if not self._authorizer.authorize(call.user, asked).allowed:
                where = f" in namespace {found.namespace}" if found.namespace else ""
                name = str(GroupResource(found.group, found.resource))
                why = f"it names {name}{where}, which you may not {verb}"
                raise Forbidden.of(*self._kind, operation.obj["metadata"].get("name") or "", why)
