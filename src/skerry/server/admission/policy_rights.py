"""Nobody reads by a policy what they may not read themselves.

A ValidatingAdmissionPolicy shows parts of its parameters in the messages of its refusals: whoever
names a kind of parameters, or objects of it, must be allowed to get them. As in Kubernetes it is
asked when policy or binding is written: rights that are taken away later leave both as they are.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from skerry.api.errors import FieldError, Invalid
from skerry.api.keys import ObjectKey
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.server.access import Attributes, Authorizer
from skerry.server.admission.operation import Operation
from skerry.server.admission.policies import BINDINGS, POLICIES
from skerry.server.codec import decode
from skerry.store.base import Store

# What cannot be found out must be allowed for everything.
_ANY = GroupResource("*", "*")


class _Read(NamedTuple):
    """What a policy or binding would read, and the field that says so."""

    field: str
    verb: str
    kind: GroupResource
    namespace: str = ""
    name: str = ""


class PolicyRights:
    """Refuses parameters that whoever writes a policy or binding may not read."""

    TYPES: ClassVar = frozenset({POLICIES, BINDINGS})

    def __init__(self, authorizer: Authorizer, store: Store) -> None:
        self._authorizer = authorizer
        self._store = store

    async def admit(self, operation: Operation) -> None:
        if operation.type not in self.TYPES or operation.verb == "DELETE" or operation.subresource:
            return
        if operation.type == POLICIES:
            wanted = self._by_policy(operation)
        else:
            wanted = await self._by_binding(operation)
        if wanted is not None:
            self._check(operation, wanted)

    def _by_policy(self, operation: Operation) -> _Read | None:
        kind = _spec(operation.obj).get("paramKind")
        if not kind or kind == _spec(operation.old).get("paramKind"):
            return None
        return _Read("spec.paramKind", "get", _resolved(operation, kind))

    async def _by_binding(self, operation: Operation) -> _Read | None:
        new, old = _spec(operation.obj), _spec(operation.old)
        reference = new.get("paramRef")
        if not reference or all(new.get(name) == old.get(name) for name in _DECISIVE):
            return None
        cluster = operation.call.info.cluster
        policy_name = new.get("policyName") or ""
        entry = await self._store.get(ObjectKey(*POLICIES, cluster, "", policy_name).path())
        policy = None if entry is None else decode(entry.value, entry.revision)
        name = reference.get("name") or ""
        return _Read(
            "spec.paramRef",
            "get" if name else "list",
            _resolved(operation, _spec(policy).get("paramKind")),
            # Without one it is that of each object the policy means.
            reference.get("namespace") or "",
            name,
        )

    def _check(self, operation: Operation, wanted: _Read) -> None:
        call = operation.call
        asked = Attributes(
            cluster=call.info.cluster,
            verb=wanted.verb,
            group=wanted.kind.group,
            version="*",
            resource=wanted.kind.resource,
            namespace=wanted.namespace,
            name=wanted.name,
        )
        if self._authorizer.authorize(call.user, asked).allowed:
            return
        what = "all objects" if wanted.kind == _ANY else str(wanted.kind)
        why = f'user "{call.user.name}" does not have "{wanted.verb}" permission on {what}'
        name = operation.obj["metadata"].get("name") or ""
        error = FieldError.forbidden(wanted.field, why)
        raise Invalid.of(call.group, call.kind, name, [error])


_DECISIVE = ("paramRef", "policyName")


def _spec(obj: Object | None) -> dict[str, Any]:
    return (obj or {}).get("spec") or {}


def _resolved(operation: Operation, kind: dict[str, Any] | None) -> GroupResource:
    """Return the type of a kind of parameters, as the cluster serves it.

    What is wrong with the object itself is found by others later.
    """
    named = kind or {}
    found = operation.call.types.by_kind.get((named.get("apiVersion", ""), named.get("kind", "")))
    return _ANY if found is None else found.info.group_resource
