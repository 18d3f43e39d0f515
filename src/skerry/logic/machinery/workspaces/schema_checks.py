"""What is wrong with schemas that exports offer and with their conversions, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.schema import Schema
from skerry.logic.machinery.schema import validate
from skerry.logic.machinery.workspaces.schemas import conversion_errors, schema_errors


def schema_complaint(form: Schema, obj: Mapping[str, Any]) -> str:
    """Return why an APIResourceSchema cannot be served; nothing if it can, or if it is not even
    of its *form*: then it is refused for that."""
    errors = [] if validate(form, obj) else schema_errors(obj)
    return listed(errors) if errors else ""


def conversion_complaint(schema: Mapping[str, Any], conversion: Mapping[str, Any]) -> str:
    """Return why an APIConversion makes no sense for *schema*; nothing if it does."""
    errors = conversion_errors(schema, conversion)
    if not errors:
        return ""
    message = str(errors[0]) if len(errors) == 1 else listed(errors)
    return f"error compiling conversion rules: {message}"


def listed(errors: Sequence[FieldError]) -> str:
    """Return errors as a list is printed in Go."""
    return f"[{' '.join(map(str, errors))}]"
