"""Whether a schema is structural: every part of an object has one place that says what it is.

Two rules make pruning and defaulting possible. The spine of a schema (properties, items,
additionalProperties) names a type everywhere and alone may carry defaults, descriptions and
x-kubernetes extensions; and whatever is said of a field under allOf, anyOf, oneOf or not is also
declared on the spine.
"""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.errors import FieldError
from skerry.api.objects import Raw
from skerry.logic.machinery.crd.definition import mapping, sequence, text
from skerry.logic.machinery.schema.patterns import PatternError, compiled

_ROOT, _ITEM, _FIELD = "root", "item", "field"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_MISSING_TYPE = {
    _ROOT: "must not be empty at the root",
    _ITEM: "must not be empty for specified array items",
    _FIELD: "must not be empty for specified object fields",
}
# What a schema under allOf and its kin may not say, and the words for it.
_NESTED_FORBIDDEN = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def structural_errors(schema: Raw, path: str) -> list[FieldError]:
    """Return why *schema* is not structural, sorted as Kubernetes sorts it."""
    errors = [*_spine(schema, _ROOT, path), *_completeness(schema, schema, path, path)]
    return sorted(errors, key=str)


def _spine(schema: Raw, level: str, path: str) -> Iterator[FieldError]:
    yield from _children(schema, level, path)
    yield from _extensions(schema, path)
    any_of = sequence(schema.get("anyOf"))
    all_of = sequence(schema.get("allOf"))
    first = mapping(all_of[0]).get("anyOf") if all_of else None
    yield from _value_rules(
        schema,
        path,
        skip_any=list(any_of) == _INT_OR_STRING,
        skip_first=first == _INT_OR_STRING,
    )
    yield from _type_rules(schema, level, path)
    yield from _metadata_rules(schema, level, path)


def _children(schema: Raw, level: str, path: str) -> Iterator[FieldError]:
    items = schema.get("items")
    if schema.get("type") == "array" and items is None:
        yield FieldError.required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _spine(items, _ITEM, f"{path}.items")
    for name, child in mapping(schema.get("properties")).items():
        yield from _spine(mapping(child), _FIELD, f"{path}.properties[{name}]")
    additional = schema.get("additionalProperties")
    if additional is not None:
        where = f"{path}.additionalProperties"
        if level == _ROOT:
            yield FieldError.forbidden(where, "must not be used at the root")
        if isinstance(additional, dict):
            yield from _spine(additional, _FIELD, where)


def _extensions(schema: Raw, path: str) -> Iterator[FieldError]:
    if not schema.get("x-kubernetes-int-or-string"):
        return
    for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
        if schema.get(name):
            detail = "must be false if x-kubernetes-int-or-string is true"
            yield FieldError.invalid(f"{path}.{name}", True, detail)


def _type_rules(schema: Raw, level: str, path: str) -> Iterator[FieldError]:
    kind = text(schema.get("type"))
    where = f"{path}.type"
    if schema.get("x-kubernetes-embedded-resource"):
        yield from _embedded_rules(schema, kind, path)
    elif not kind and not _typeless(schema):
        yield FieldError.required(where, _MISSING_TYPE[level])
    if level == _ROOT and kind and kind != "object":
        yield FieldError.invalid(where, kind, "must be object at the root")


def _typeless(schema: Raw) -> bool:
    return bool(
        schema.get("x-kubernetes-int-or-string")
        or schema.get("x-kubernetes-preserve-unknown-fields")
    )


def _embedded_rules(schema: Raw, kind: str, path: str) -> Iterator[FieldError]:
    if kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        where = f"{path}.type"
        yield (
            FieldError.invalid(where, kind, detail) if kind else FieldError.required(where, detail)
        )
    if schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield FieldError.forbidden(f"{path}.additionalProperties", detail)
    if not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        yield FieldError.required(f"{path}.properties", detail)


def _metadata_rules(schema: Raw, level: str, path: str) -> Iterator[FieldError]:
    properties = mapping(schema.get("properties"))
    resource = level == _ROOT or bool(schema.get("x-kubernetes-embedded-resource"))
    for name in ("kind", "apiVersion"):
        if resource and name in properties:
            kind = text(mapping(properties[name]).get("type"))
            if kind != "string":
                where = f"{path}.properties[{name}].type"
                yield FieldError.invalid(where, kind, "must be string")
    if "metadata" not in properties:
        return
    metadata = mapping(properties["metadata"])
    where = f"{path}.properties[metadata]"
    if resource and metadata.get("type") != "object":
        yield FieldError.invalid(f"{where}.type", text(metadata.get("type")), "must be object")
    if level == _ROOT and not _only_names(metadata):
        yield FieldError.forbidden(
            where,
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified",
        )


def _only_names(metadata: Raw) -> bool:
    """Tell whether a metadata schema restricts at most the names."""
    if set(metadata) - {"type", "default", "properties", "description"}:
        return False
    return set(mapping(metadata.get("properties"))) <= {"name", "generateName"}


def _value_rules(
    schema: Raw, path: str, *, skip_any: bool = False, skip_first: bool = False
) -> Iterator[FieldError]:
    """Check allOf and its kin at one node, and the pattern."""
    if not skip_any:
        for index, nested in enumerate(sequence(schema.get("anyOf"))):
            yield from _nested_rules(mapping(nested), f"{path}.anyOf[{index}]")
    for index, nested in enumerate(sequence(schema.get("allOf"))):
        where = f"{path}.allOf[{index}]"
        yield from _nested_rules(mapping(nested), where, skip_any=skip_first and index == 0)
    for index, nested in enumerate(sequence(schema.get("oneOf"))):
        yield from _nested_rules(mapping(nested), f"{path}.oneOf[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested_rules(schema["not"], f"{path}.not")
    pattern = text(schema.get("pattern"))
    if pattern:
        try:
            compiled(pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield FieldError.invalid(f"{path}.pattern", pattern, detail)


def _nested_rules(schema: Raw, path: str, *, skip_any: bool = False) -> Iterator[FieldError]:
    yield from _value_rules(schema, path, skip_any=skip_any)
    if isinstance(schema.get("items"), dict):
        yield from _nested_rules(schema["items"], f"{path}.items")
    properties = mapping(schema.get("properties"))
    for name, child in properties.items():
        yield from _nested_rules(mapping(child), f"{path}.properties[{name}]")
    for name, detail in _NESTED_FORBIDDEN.items():
        given = schema.get(name)
        if given or (name in ("additionalProperties", "default") and given is not None):
            yield FieldError.forbidden(f"{path}.{name}", detail)
    if "metadata" in properties:
        where = f"{path}.properties[metadata]"
        yield FieldError.forbidden(where, "must not be specified in a nested context")


def _completeness(
    spine: Raw | None, rules: Raw, path: str, shown_path: str
) -> Iterator[FieldError]:
    """Check that what nested rules speak of at one node is declared on the spine."""
    for key in ("allOf", "anyOf", "oneOf"):
        for index, nested in enumerate(sequence(rules.get(key))):
            yield from _complete(spine, mapping(nested), path, f"{shown_path}.{key}[{index}]")
    if isinstance(rules.get("not"), dict):
        yield from _complete(spine, rules["not"], path, f"{shown_path}.not")


def _complete(spine: Raw | None, rules: Raw, path: str, shown_path: str) -> Iterator[FieldError]:
    if spine is None:
        yield FieldError.required(path, f"because it is defined in {shown_path}")
        return
    yield from _completeness(spine, rules, path, shown_path)
    if isinstance(rules.get("items"), dict):
        items = spine.get("items")
        declared = items if isinstance(items, dict) else None
        yield from _complete(declared, rules["items"], f"{path}.items", f"{shown_path}.items")
    declared_fields = mapping(spine.get("properties"))
    for name, child in mapping(rules.get("properties")).items():
        field = declared_fields.get(name)
        below = field if isinstance(field, dict) else None
        step = f".properties[{name}]"
        yield from _complete(below, mapping(child), path + step, shown_path + step)
