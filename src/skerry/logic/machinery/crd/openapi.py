"""The rules an OpenAPI schema of a CustomResourceDefinition must follow, node by node.

This is the second of two readings: ``structural`` looks at the shape as a whole, this one at what
each node says, including its validation rules. Rules are compiled only where nothing else is
wrong at or below their node, because types of a broken schema would only confuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.objects import Raw
from skerry.api.schema import Schema
from skerry.logic.machinery.crd.definition import mapping, sequence, text
from skerry.logic.machinery.crd.list_types import list_type_errors
from skerry.logic.machinery.crd.rules import RuleChecks, field_path_valid
from skerry.logic.machinery.work import spend

# All that is asked of one node, here and by the other readings of a definition.
_NODE_UNITS = 250
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the walk is: the path, and what the nodes around forbid."""

    path: str
    root: bool = False
    inside_meta: bool = False
    # Why defaults may not stand here; empty: they may.
    no_defaults: str = ""
    # The list or map in which old and new values cannot be matched; empty: they can.
    uncorrelated: str = ""
    # How often the node can occur; None: unbounded.
    cardinality: int | None = 1
    # Under allOf and its kin there are no types to compile rules against.
    nested: bool = False

    def below(self, step: str, **changes: Any) -> Place:
        return replace(self, path=self.path + step, root=False, **changes)


class OpenAPIChecks:
    """One schema's check; rules are only looked at when the schema is structural."""

    def __init__(self, *, rules: RuleChecks | None) -> None:
        self._rules = rules

    def check(self, raw: Raw, schema: Schema | None, place: Place) -> list[FieldError]:
        """Return what is wrong at and below a node, its rules' errors last."""
        spend(_NODE_UNITS)
        errors = [*_node_errors(raw, place)]
        for child, below, at in _children(raw, schema, place):
            errors += self.check(child, below, at)
        errors += [*_extension_errors(raw, place.path), *list_type_errors(raw, place.path)]
        rules = sequence(raw.get("x-kubernetes-validations"))
        if not rules:
            return errors
        errors += [*_rule_form_errors(raw, schema, place.path)]
        if not errors and self._rules is not None and schema is not None and not place.nested:
            self._rules.check(schema, place.path, place.root, place.cardinality, place.uncorrelated)
        return errors


def _node_errors(raw: Raw, place: Place) -> Iterator[FieldError]:
    path, kind = place.path, text(raw.get("type"))
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield FieldError.forbidden(f"{path}.type", detail)
    elif kind and kind not in _TYPES:
        yield FieldError.not_supported(f"{path}.type", kind, _TYPES)
    if raw.get("default") is not None and place.no_defaults:
        detail = f"must not be set {place.no_defaults}".rstrip()
        yield FieldError.forbidden(f"{path}.default", detail)
    for name in _UNSUPPORTED:
        if raw.get(name) not in (None, "", {}):
            yield FieldError.forbidden(f"{path}.{name}", f"{name} is not supported")
    if isinstance(raw.get("items"), list):
        detail = "items must be a schema object and not an array"
        yield FieldError.forbidden(f"{path}.items", detail)
    if place.inside_meta and raw.get("x-kubernetes-embedded-resource"):
        where = f"{path}.x-kubernetes-embedded-resource"
        yield FieldError.forbidden(where, "must not be used inside of resource meta")
    if raw.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield FieldError.forbidden(f"{path}.uniqueItems", detail)
    if raw.get("properties") and raw.get("additionalProperties") not in (None, True):
        detail = "additionalProperties and properties are mutual exclusive"
        yield FieldError.forbidden(f"{path}.additionalProperties", detail)


def _children(
    raw: Raw, schema: Schema | None, place: Place
) -> Iterator[tuple[Raw, Schema | None, Place]]:
    """Yield the schemas inside a schema with their places, in Kubernetes' order."""
    additional = raw.get("additionalProperties")
    if isinstance(additional, dict):
        below = schema.additional if schema is not None else None
        yield additional, below, _inside_map(raw, place)
    for name, child in mapping(raw.get("properties")).items():
        below = schema.field(name) if schema is not None else None
        yield mapping(child), below, _inside_field(raw, name, place)
    if isinstance(raw.get("not"), dict):
        yield raw["not"], None, place.below(".not", nested=True)
    for key in ("allOf", "oneOf", "anyOf"):
        for index, child in enumerate(sequence(raw.get(key))):
            yield mapping(child), None, place.below(f".{key}[{index}]", nested=True)
    if isinstance(raw.get("items"), dict):
        below = schema.items if schema is not None else None
        yield raw["items"], below, _inside_list(raw, place)


def _times(cardinality: int | None, maximum: Any) -> int | None:
    """Return how often something inside a list or map of at most *maximum* can occur."""
    if cardinality is None or not isinstance(maximum, int):
        return None
    return cardinality * maximum


def _inside_map(raw: Raw, place: Place) -> Place:
    no_defaults = place.no_defaults
    if place.inside_meta:
        no_defaults = "inside additionalProperties applying to object metadata"
    return place.below(
        ".additionalProperties",
        no_defaults=no_defaults,
        cardinality=_times(place.cardinality, raw.get("maxProperties")),
    )


def _inside_field(raw: Raw, name: str, place: Place) -> Place:
    changes: dict[str, Any] = {}
    if raw.get("x-kubernetes-map-type") == "atomic" and not place.uncorrelated:
        changes["uncorrelated"] = place.path
    if (place.root or raw.get("x-kubernetes-embedded-resource")) and name in _META:
        changes["inside_meta"] = True
        if place.root:
            changes["no_defaults"] = f"in top-level {name}"
    return place.below(f".properties[{name}]", **changes)


def _inside_list(raw: Raw, place: Place) -> Place:
    changes: dict[str, Any] = {"cardinality": _times(place.cardinality, raw.get("maxItems"))}
    # Only items of list-maps have a counterpart in the former object.
    if raw.get("x-kubernetes-list-type") != "map" and not place.uncorrelated:
        changes["uncorrelated"] = place.path
    return place.below(".items", **changes)


def _extension_errors(raw: Raw, path: str) -> Iterator[FieldError]:
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        yield FieldError.invalid(where, False, "must be true or undefined")


_REASONS = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)


def _rule_form_errors(raw: Raw, schema: Schema | None, path: str) -> Iterator[FieldError]:
    for index, item in enumerate(sequence(raw.get("x-kubernetes-validations"))):
        rule = mapping(item)
        where = f"{path}.x-kubernetes-validations[{index}]"
        yield from _message_errors(rule, where)
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            yield FieldError.not_supported(f"{where}.reason", reason, _REASONS)
        field_path = text(rule.get("fieldPath"))
        if field_path and not field_path.strip():
            detail = "must be non-empty if specified"
            yield FieldError.invalid(f"{where}.fieldPath", field_path, detail)
        if _broken(field_path):
            detail = "must not contain line breaks"
            yield FieldError.invalid(f"{where}.fieldPath", field_path, detail)
        if field_path and schema is not None and not field_path_valid(field_path, schema):
            yield FieldError.invalid(f"{where}.fieldPath", field_path, "must be a valid path")


def _message_errors(rule: Raw, where: str) -> Iterator[FieldError]:
    written, message = text(rule.get("rule")).strip(), text(rule.get("message"))
    if not written:
        yield FieldError.required(f"{where}.rule", "rule is not specified")
    elif message and not message.strip():
        detail = "must be non-empty if specified"
        yield FieldError.invalid(f"{where}.message", message, detail)
    elif _broken(message.strip()):
        yield FieldError.invalid(f"{where}.message", message, "must not contain line breaks")
    elif _broken(written) and not message.strip():
        detail = "message must be specified if rule contains line breaks"
        yield FieldError.required(f"{where}.message", detail)
    computed = text(rule.get("messageExpression"))
    if computed and not computed.strip():
        detail = "messageExpression must be non-empty if specified"
        yield FieldError.required(f"{where}.messageExpression", detail)


def _broken(line: str) -> bool:
    return "\n" in line or "\r" in line
