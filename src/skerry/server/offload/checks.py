"""Checks that admission makes of an object, by the name a worker knows them by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skerry.logic.machinery.workspaces.schema_checks import conversion_complaint, schema_complaint
from skerry.server.request.call import Call

Document = Mapping[str, Any]


def _schema(call: Call, obj: Document) -> str:
    return schema_complaint(call.resource.schema, obj)


def _conversion(_: Call, schema: Document, conversion: Document) -> str:
    return conversion_complaint(schema, conversion)


# What each returns is why the object is refused; nothing if it is not.
CHECKS: Final[Mapping[str, Callable[..., str]]] = {"schema": _schema, "conversion": _conversion}
