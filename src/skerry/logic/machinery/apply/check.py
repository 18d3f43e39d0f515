"""An applied configuration held against its schema before anything is merged.

An apply states ownership of what it names, so it may name nothing the schema does not know, and no
element of a list twice. The texts are those structured-merge-diff gives.
"""

from __future__ import annotations

from typing import Any, Final

from skerry.api.schema import Schema
from skerry.logic.machinery.apply.fieldset import path_text
from skerry.logic.machinery.apply.typed import NotTyped, element_of, is_associative
from skerry.logic.machinery.patch.values import go_text, go_type

# What an embedded object may have without its schema saying so.
_OF_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata")


def problems(applied: Any, schema: Schema | None) -> list[str]:
    """Return everything wrong with *applied*, each with its path; nothing when it will do."""
    found: list[str] = []
    if schema is not None:
        _check(applied, schema, "", False, found)
    return found


def problem_text(found: list[str]) -> str:
    """Return *found* as one message."""
    return found[0] if len(found) == 1 else "\n".join(["errors:", *("  " + one for one in found)])


def _check(value: Any, schema: Schema, path: str, lenient: bool, found: list[str]) -> None:
    if value is None:
        return
    lenient = lenient or schema.preserve_unknown
    scalar = schema.int_or_string or schema.format == "quantity"
    if schema.type == "object" or (schema.type == "" and isinstance(value, dict) and not scalar):
        _check_map(value, schema, path, lenient, found)
    elif schema.type == "array" or (schema.type == "" and isinstance(value, list) and not scalar):
        _check_list(value, schema, path, lenient, found)
    else:
        wrong = _wrong_scalar(value, schema)
        if wrong:
            found.append(_at(path, wrong))


def _at(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _check_map(value: Any, schema: Schema, path: str, lenient: bool, found: list[str]) -> None:
    if not isinstance(value, dict):
        found.append(_at(path, f"expected map, got &{{{go_text(value)}}}"))
        return
    closed = bool(schema.property_names) and not lenient and schema.additional is None
    for name, member in value.items():
        child = schema.child(name)
        if child is not None:
            _check(member, child, f"{path}.{name}", lenient, found)
        elif closed and not (schema.embedded and name in _OF_EVERY_OBJECT):
            found.append(f"{path}.{name}: field not declared in schema")


def _check_list(value: Any, schema: Schema, path: str, lenient: bool, found: list[str]) -> None:
    if not isinstance(value, list):
        found.append(_at(path, f"expected list, got &{{{go_text(value)}}}"))
        return
    associative = is_associative(schema)
    seen: set[str] = set()
    for index, item in enumerate(value):
        place = f"[{index}]"
        if associative:
            try:
                element = element_of(item, schema)
            except NotTyped as error:
                found.append(_at(path, f"element {index}: {error}"))
                return
            place = path_text((element,))
            if element in seen:
                found.append(_at(path, f"duplicate entries for key {place}"))
            seen.add(element)
        if schema.items is not None:
            _check(item, schema.items, path + place, lenient, found)


def _wrong_scalar(value: Any, schema: Schema) -> str:
    """Return what is wrong with a scalar of a plain type; formats are the validator's business."""
    boolean = isinstance(value, bool)
    if schema.int_or_string or schema.format == "quantity" or schema.type == "":
        wrong = isinstance(value, dict | list)
        return f"expected any scalar, got &{{{go_text(value)}}}" if wrong else ""
    if schema.type in ("integer", "number"):
        wrong = boolean or not isinstance(value, int | float)
        return f"expected numeric (int or float), got {go_type(value)}" if wrong else ""
    if schema.type == "boolean":
        return "" if boolean else f"expected boolean, got &{{{go_text(value)}}}"
    if schema.type == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{go_text(value)}}}"
    return ""
