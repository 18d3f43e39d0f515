"""The rules of a version: its schema, subresources, printer columns and selectable fields.

What every version says alike is checked once, as ``Shared``, under the path Kubernetes gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.objects import Raw
from skerry.api.schema import Schema
from skerry.logic.machinery import names
from skerry.logic.machinery.cel.field_paths import FieldPathError, rendered, resolved_path
from skerry.logic.machinery.crd.definition import mapping, schema_of, sequence, text
from skerry.logic.machinery.crd.openapi import OpenAPIChecks, Place
from skerry.logic.machinery.crd.rules import RuleChecks
from skerry.logic.machinery.crd.schema_defaults import default_errors
from skerry.logic.machinery.crd.structural import structural_errors
from skerry.logic.machinery.schema.patterns import PatternError, compiled

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
MAX_SELECTABLE = 8
# Each is looked for in every object of a Table.
MAX_COLUMNS = 40
# Of all patterns of a schema together. They are made when objects first need them, 1.7 us for each;
# schemas in use come to a few thousand.
MAX_PATTERN_INSTRUCTIONS = 20_000
_ALLOWED_AT_ROOT = (
    "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum",
    "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems",
    "uniqueItems", "multipleOf", "required", "items", "properties", "externalDocs", "example",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
)  # fmt: skip
_GO_NAMES = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties "
    "ExternalDocs Example XPreserveUnknownFields XValidations"
)


@dataclass(frozen=True, slots=True)
class Shared:
    """Which parts all versions have in common."""

    schema: bool
    subresources: bool
    columns: bool
    selectable: bool

    @classmethod
    def of(cls, versions: list[Raw]) -> Shared:
        return cls(
            *(
                _alike(versions, key)
                for key in (
                    "schema",
                    "subresources",
                    "additionalPrinterColumns",
                    "selectableFields",
                )
            )
        )

    def errors(self, versions: list[Raw], unchanged: frozenset[str]) -> Iterator[FieldError]:
        """Yield what is wrong with the common parts."""
        if not versions:
            return
        first = versions[0]
        if self.schema:
            status = any(_has_status(version) for version in versions)
            limit = text(first.get("name")) not in unchanged
            yield from schema_errors(first, "spec.validation", status=status, limit=limit)
        if self.subresources:
            yield from _subresources(first, "spec.subresources")
        if self.columns:
            yield from _columns(first, "spec.additionalPrinterColumns")
        if self.selectable:
            yield from _selectable(first, "spec.selectableFields")


def _alike(versions: list[Raw], key: str) -> bool:
    return bool(versions) and all(version.get(key) == versions[0].get(key) for version in versions)


def _has_status(version: Raw) -> bool:
    return mapping(version.get("subresources")).get("status") is not None


def version_errors(
    versions: list[Raw], shared: Shared, unchanged: frozenset[str]
) -> Iterator[FieldError]:
    """Yield what is wrong with each version by itself."""
    for index, version in enumerate(versions):
        if schema_of(version) is None:
            yield FieldError.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = text(version.get("name"))
        wrong = names.dns1035_label(name)
        if wrong:
            yield FieldError.invalid(f"{path}.name", name, ",".join(wrong))
        yield from _deprecation(version, f"{path}.deprecationWarning")
        if not shared.schema:
            limit = name not in unchanged
            status = _has_status(version)
            yield from schema_errors(version, f"{path}.schema", status=status, limit=limit)
        if not shared.subresources:
            yield from _subresources(version, f"{path}.subresources")
        if not shared.columns:
            yield from _columns(version, f"{path}.additionalPrinterColumns")
        if not shared.selectable:
            yield from _selectable(version, f"{path}.selectableFields")


def _deprecation(version: Raw, path: str) -> Iterator[FieldError]:
    warning = version.get("deprecationWarning")
    if not isinstance(warning, str):
        return
    if not version.get("deprecated"):
        yield FieldError.invalid(path, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > 256:
        yield FieldError.invalid(path, warning, "must be <= 256 characters long")
    if not warning:
        yield FieldError.invalid(path, warning, "must not be an empty string")
    for index, char in enumerate(warning):
        if not char.isprintable():
            detail = (
                "must only contain printable UTF-8 characters; "
                f"non-printable character found at index {index}"
            )
            yield FieldError.invalid(path, warning, detail)
            break


def schema_errors(version: Raw, path: str, *, status: bool, limit: bool) -> Iterator[FieldError]:
    """Yield what is wrong with a version's schema, which stands at *path*."""
    raw = schema_of(version)
    if raw is None:
        return
    where = f"{path}.openAPIV3Schema"
    if status:
        yield from _root_with_status(raw, where)
    if raw.get("nullable"):
        yield FieldError.forbidden(f"{where}.nullable", "nullable cannot be true at the root")
    schema = Schema(raw) if well_formed(raw) else None
    structural = structural_errors(raw, where)
    if schema is not None and not structural:
        structural = list(default_errors(schema, where))
    if not structural:
        structural = list(_pattern_errors(raw, where))
    yield from structural
    rules = None if structural else RuleChecks(limit_expressions=limit)
    found = OpenAPIChecks(rules=rules).check(raw, schema, Place(where, root=True))
    yield from found
    if schema is None and not structural and not found:
        yield FieldError.invalid(where, "", "must be a JSON schema: a part has a wrong type")
    if rules is not None:
        yield from rules.errors
        yield from rules.total_errors(where)


def _instructions(pattern: str) -> int:
    try:
        return compiled(pattern).size
    except PatternError:
        # Of a default or an example; those of the schema have been checked.
        return 0


def _pattern_errors(raw: Raw, path: str) -> Iterator[FieldError]:
    """Refuse patterns that together take long to prepare; each by itself is valid."""
    patterns: set[str] = set()
    waiting: list[Any] = [raw]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            pattern = node.get("pattern")
            if isinstance(pattern, str):
                patterns.add(pattern)
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    total = sum(map(_instructions, patterns))
    if total > MAX_PATTERN_INSTRUCTIONS:
        detail = (
            f"its patterns come to {total} instructions: want at most {MAX_PATTERN_INSTRUCTIONS}"
        )
        yield FieldError.forbidden(path, detail)


_PARTS: Mapping[str, type | tuple[type, ...]] = {
    "items": dict,
    "not": dict,
    "additionalProperties": (dict, bool),
    "properties": dict,
    "allOf": list,
    "anyOf": list,
    "oneOf": list,
    "enum": list,
    "required": list,
    "type": str,
    "format": str,
    "pattern": str,
    "x-kubernetes-list-type": str,
    "x-kubernetes-map-type": str,
    "x-kubernetes-list-map-keys": list,
    "x-kubernetes-validations": list,
    "nullable": bool,
    "x-kubernetes-int-or-string": bool,
    "x-kubernetes-embedded-resource": bool,
    "x-kubernetes-preserve-unknown-fields": bool,
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), (int, float)),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), int
    ),
}


def well_formed(raw: Any) -> bool:
    """Tell whether every part of a schema has the type it must have, and nothing refers away.

    Decoding lets unions through, so what is inside them is only known here.
    """
    if not isinstance(raw, dict) or raw.get("$ref") is not None:
        return False
    if any(key in raw and not isinstance(raw[key], _PARTS[key]) for key in _PARTS):
        return False
    words = (*raw.get("required", ()), *raw.get("x-kubernetes-list-map-keys", ()))
    if not all(isinstance(word, str) for word in words):
        return False
    inner = [raw[key] for key in ("items", "not") if raw.get(key) is not None]
    if isinstance(raw.get("additionalProperties"), dict):
        inner.append(raw["additionalProperties"])
    for key in ("allOf", "anyOf", "oneOf"):
        inner += raw.get(key) or ()
    return all(map(well_formed, [*inner, *(raw.get("properties") or {}).values()]))


def _root_with_status(raw: Raw, where: str) -> Iterator[FieldError]:
    """With a status subresource the root may say only what survives taking status out."""
    kind = raw.get("type")
    if kind and kind != "object":
        detail = (
            'only "object" is allowed as the type at the root of the schema if the status '
            "subresource is enabled"
        )
        yield FieldError.invalid(f"{where}.type", kind, detail)
        return
    for key, value in raw.items():
        if value and key not in _ALLOWED_AT_ROOT:
            detail = (
                f"only [{_GO_NAMES}] fields are allowed at the root of the schema if the status "
                "subresource is enabled"
            )
            yield FieldError.invalid(where, dict(raw), detail)
            return


def _subresources(version: Raw, path: str) -> Iterator[FieldError]:
    scale = mapping(version.get("subresources")).get("scale")
    if not isinstance(scale, dict):
        return
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        given = text(scale.get(name))
        where = f"{path}.scale.{name}"
        if not given:
            yield FieldError.required(where)
        elif not given.startswith("."):
            detail = "must be a simple json path starting with ."
            yield FieldError.invalid(where, given, detail)
        elif not given.startswith(f"{root}."):
            yield FieldError.invalid(where, given, f"should be a json path under {root}")
    yield from _label_selector(text(scale.get("labelSelectorPath")), path)


def _label_selector(given: str, path: str) -> Iterator[FieldError]:
    where = f"{path}.scale.labelSelectorPath"
    if given and not given.startswith("."):
        yield FieldError.invalid(where, given, "must be a simple json path starting with .")
    elif given and not given.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        yield FieldError.invalid(where, given, detail)


def _columns(version: Raw, path: str) -> Iterator[FieldError]:
    columns = sequence(version.get("additionalPrinterColumns"))
    if len(columns) > MAX_COLUMNS:
        yield FieldError.too_many(path, len(columns), MAX_COLUMNS)
        return
    for index, item in enumerate(columns):
        column, where = mapping(item), f"{path}[{index}]"
        if not column.get("name"):
            yield FieldError.required(f"{where}.name")
        yield from _column_type(text(column.get("type")), f"{where}.type")
        form = text(column.get("format"))
        if form and form not in _COLUMN_FORMATS:
            detail = f"must be one of {','.join(_COLUMN_FORMATS)}"
            yield FieldError.invalid(f"{where}.format", form, detail)
        json_path = text(column.get("jsonPath"))
        if not json_path:
            yield FieldError.required(f"{where}.JSONPath")
        elif not json_path.startswith("."):
            detail = "must be a simple json path starting with ."
            yield FieldError.invalid(f"{where}.JSONPath", json_path, detail)


def _column_type(kind: str, where: str) -> Iterator[FieldError]:
    detail = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield FieldError.required(where, detail)
    elif kind not in _COLUMN_TYPES:
        yield FieldError.invalid(where, kind, detail)


def _selectable(version: Raw, path: str) -> Iterator[FieldError]:
    fields = sequence(version.get("selectableFields"))
    raw = schema_of(version)
    if not fields:
        return
    if raw is None:
        detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield FieldError.invalid(path, "", detail)
        return
    if not well_formed(raw):
        return  # which is said where the schema itself is judged
    schema, seen = Schema(raw), set[str]()
    for index, item in enumerate(fields):
        given, where = text(mapping(item).get("jsonPath")), f"{path}[{index}].jsonPath"
        if not given:
            yield FieldError.required(where)
            continue
        try:
            steps, found = resolved_path(given, schema, brackets=False)
        except FieldPathError as error:
            yield FieldError.invalid(where, given, f"is an invalid path: {error}")
            continue
        yield from _selected(given, where, steps[0][0] if steps else "", found)
        if rendered(steps) in seen:
            yield FieldError.duplicate(where, given)
        seen.add(rendered(steps))
    if len(seen) > MAX_SELECTABLE:
        yield FieldError.too_many(path, len(seen), MAX_SELECTABLE)


def _selected(given: str, where: str, root: str, found: Schema | None) -> Iterator[FieldError]:
    if root == "metadata":
        yield FieldError.invalid(where, given, "must not point to fields in metadata")
    if found is None or found.type not in ("string", "boolean", "integer"):
        detail = (
            "must point to a field of type string, boolean or integer. Enum string fields and "
            "strings with formats are allowed."
        )
        yield FieldError.invalid(where, given, detail)
