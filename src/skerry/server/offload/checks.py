"""Checks that admission makes of an object, by the name a worker knows them by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from skerry.api.objects import Object
from skerry.logic.machinery.admission.remote import judged
from skerry.logic.machinery.admission.type_checking import checked_types
from skerry.logic.machinery.builtin.resources import builtin_resources
from skerry.logic.machinery.workspaces.schema_checks import conversion_complaint, schema_complaint
from skerry.server.request.call import Call

Document = Mapping[str, Any]


def _schema(call: Call, obj: Document) -> str:
    return schema_complaint(call.resource.schema, obj)


def _conversion(_: Call, schema: Document, conversion: Document) -> str:
    return conversion_complaint(schema, conversion)


def _policy(_: Call, policy: Object, seen: Object, verdicts: Sequence[Sequence[Any]]) -> str:
    return judged(policy, seen, verdicts)


def _policy_types(_: Call, policy: Document, custom: Document) -> str:
    return checked_types(policy, builtin_resources(), custom)


# What each returns is why the object is refused, nothing if it is not; of those about
# policies, what was found, as JSON.
CHECKS: Final[Mapping[str, Callable[..., str]]] = {
    "schema": _schema,
    "conversion": _conversion,
    "policy": _policy,
    "policy-types": _policy_types,
}
