"""Validation of values against a schema, as apiextensions does it for structural schemas.

``validate`` says everything that is wrong, in Kubernetes' words. ``validate_update`` forgives
what was wrong before and was not touched (validation ratcheting): every rule runs first, and only
if something failed is the old object looked at, so the common case costs nothing more.

Two kinds of closure make up a compiled schema: rules of the structural node, and nested value
rules under allOf, anyOf, oneOf and not, which run on the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from skerry.api.errors import FieldError
from skerry.api.schema import Schema
from skerry.logic.machinery.schema import findings
from skerry.logic.machinery.schema.compilation import Fields, Roots
from skerry.logic.machinery.schema.embedded import embedded_rule
from skerry.logic.machinery.schema.findings import Finding
from skerry.logic.machinery.schema.lists import identity, uniqueness_rule
from skerry.logic.machinery.schema.paths import MapKey, Path
from skerry.logic.machinery.schema.ratcheting import unforgiven
from skerry.logic.machinery.schema.values import Check, enum_rule, number_rules, string_rules

_UNKNOWN: Final = object()
_LAZY: Final = object()
_Accepts = Callable[[Any], bool]


def validate(schema: Schema, obj: Any, path: str = "") -> list[FieldError]:
    """Return everything wrong with *obj*; *path* is where it stands in a larger object."""
    found = found_in(schema, obj, path)
    return [finding.error for finding in found]


def validate_update(schema: Schema, obj: Any, old: Any, path: str = "") -> list[FieldError]:
    """Return what is wrong with *obj* and was not already so, untouched, in *old*."""
    found = found_in(schema, obj, path)
    if not found:
        return []
    return [finding.error for finding in unforgiven(schema, found, obj, old, path)]


def found_in(schema: Schema, obj: Any, path: str = "") -> list[Finding]:
    """Return the findings themselves, with the nodes they blame."""
    found: list[Finding] = []
    _ROOTS.of(schema)(obj, (None, path) if path else None, found)
    return found


def _compile(schema: Schema) -> Check:
    """Return the closure that checks a value of *schema*."""
    accepts, wanted = _type_rule(schema)
    enum = enum_rule(schema.raw)
    by_type = _rules_by_type(schema)
    general = [*_combinations(schema), *([enum] if enum else [])]
    if not by_type and not general and schema.type in _SCALARS and not schema.int_or_string:
        return _scalar_check(schema)

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if not accepts(value):
            found.append(findings.wrong_type(path, wanted, value))
            return
        if value is None:
            # Of a null only the type and the enum are asked.
            if enum is not None:
                enum(value, path, found)
            return
        for rule in by_type.get(type(value), ()):
            rule(value, path, found)
        for rule in general:
            rule(value, path, found)

    kind = None if schema.int_or_string else _EXACT.get(schema.type)
    if kind is None:
        return check
    return _exactly(kind, (*by_type.get(kind, ()), *general), check)


_EXACT = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def _exactly(kind: type, rules: tuple[Check, ...], otherwise: Check) -> Check:
    """Return a check that is quick about values of the type the schema names."""

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if type(value) is kind:
            for rule in rules:
                rule(value, path, found)
        else:
            otherwise(value, path, found)

    return check


_SCALARS = {"string": str, "boolean": bool}
_PLAIN = {"string": str, "boolean": bool, "integer": int, "number": float}
_REMARKS = frozenset(("type", "description", "default", "title", "example", "nullable"))


def _plain_type(schema: Schema, raw: Any) -> type | None:
    """Return the type that alone makes a value valid: most fields say nothing else.

    A value of another type may still be valid; the full check decides.
    """
    if not isinstance(raw, Mapping) or not raw.keys() <= _REMARKS:
        return None
    return _PLAIN.get(schema.definitions.resolve(raw).type)


def _scalar_check(schema: Schema) -> Check:
    """Return the check of a plain string or boolean, by far the commonest nodes."""
    wanted, name, nullable = _SCALARS[schema.type], schema.type, schema.nullable

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if type(value) is not wanted and not (value is None and nullable):
            found.append(findings.wrong_type(path, name, value))

    return check


def _type_rule(schema: Schema) -> tuple[_Accepts, str]:
    nullable = schema.nullable
    if schema.int_or_string:
        return (
            lambda value: (
                type(value) is int
                or type(value) is str
                or (value is None and nullable)
                or (type(value) is float and value.is_integer())
            )
        ), "integer,string"
    name = schema.type
    if not name:
        return (lambda _: True), ""
    accepts = _TYPES.get(name, lambda _: False)
    if nullable:
        return (lambda value: value is None or accepts(value)), name
    return accepts, name


_TYPES: dict[str, _Accepts] = {
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    # 1.0 is an integer in JSON schema, and in Kubernetes.
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "number": lambda value: type(value) is int or type(value) is float,
}


def _rules_by_type(schema: Schema) -> dict[type, tuple[Check, ...]]:
    """Return the rules that apply to each type of value the schema may meet."""
    kinds: dict[type, tuple[Check, ...]] = {}
    name = schema.type
    if schema.int_or_string or name in ("", "string"):
        kinds[str] = tuple(string_rules(schema))
    if schema.int_or_string or name in ("", "integer", "number"):
        kinds[int] = kinds[float] = tuple(number_rules(schema))
    if name in ("", "array") and not schema.int_or_string:
        kinds[list] = tuple(_list_rules(schema))
    if name in ("", "object") and not schema.int_or_string:
        kinds[dict] = tuple(_object_rules(schema))
    return {kind: rules for kind, rules in kinds.items() if rules}


def _object_rules(schema: Schema) -> Iterable[Check]:
    raw = schema.raw
    if raw.get("minProperties"):
        yield _min_properties(int(raw["minProperties"]))
    if raw.get("maxProperties") is not None:
        yield _max_properties(int(raw["maxProperties"]))
    if schema.property_names:
        yield _fields_rule(schema)
    elif schema.additional is not None and schema.additional.raw:
        yield _map_rule(schema)
    if raw.get("additionalProperties") is False:
        yield _closed_rule(schema)
    if schema.required:
        yield _required_rule(schema.required)
    if schema.embedded:
        yield embedded_rule


def _min_properties(least: int) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if len(value) < least:
            text = f"should have at least {least} properties"
            found.append(findings.invalid(path, len(value), text))

    return check


def _max_properties(maximum: int) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if len(value) > maximum:
            found.append(findings.too_many(path, len(value), maximum))

    return check


def _fields_rule(schema: Schema) -> Check:
    fields = Fields(schema, _compile, _UNKNOWN)
    additional = _lazily(schema.additional) if schema.additional is not None else None
    plain = {name: _plain_type(schema, raw) for name, raw in schema.property_names.items()}

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        for key, member in value.items():
            if type(member) is plain.get(key):
                continue
            rule = fields[key]
            if rule is not _UNKNOWN:
                rule(member, (path, key), found)
            elif additional is not None:
                additional(member, (path, MapKey(key)), found)

    return check


def _lazily(schema: Schema) -> Check:
    """Return a check that is compiled when first used; recursive schemas need it."""
    cell: list[Any] = [_LAZY]

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        rule = cell[0]
        if rule is _LAZY:
            rule = cell[0] = _compile(schema)
        rule(value, path, found)

    return check


def _map_rule(schema: Schema) -> Check:
    additional = _lazily(schema.additional or schema)
    plain = _plain_type(schema, schema.raw.get("additionalProperties"))

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        for key, member in value.items():
            if type(member) is not plain:
                additional(member, (path, MapKey(key)), found)

    return check


def _closed_rule(schema: Schema) -> Check:
    declared = schema.property_names

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        found.extend(findings.forbidden_property(path, key) for key in value if key not in declared)

    return check


def _required_rule(ordered: tuple[str, ...]) -> Check:
    names = frozenset(ordered)

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if not names <= value.keys():
            found.extend(findings.required(path, name) for name in ordered if name not in value)

    return check


def _list_rules(schema: Schema) -> Iterable[Check]:
    raw = schema.raw
    if raw.get("minItems"):
        yield _min_items(int(raw["minItems"]))
    if raw.get("maxItems") is not None:
        yield _max_items(int(raw["maxItems"]))
    if raw.get("uniqueItems"):
        yield _unique_items
    if schema.items is not None:
        yield _items_rule(schema.items)
    if schema.list_type in ("set", "map"):
        yield uniqueness_rule(schema)


def _min_items(least: int) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if len(value) < least:
            found.append(findings.invalid(path, len(value), f"should have at least {least} items"))

    return check


def _max_items(maximum: int) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if len(value) > maximum:
            found.append(findings.too_many(path, len(value), maximum))

    return check


def _unique_items(value: Any, path: Path, found: list[Finding]) -> None:
    if len({identity(item) for item in value}) < len(value):
        found.append(findings.invalid(path, "", "shouldn't contain duplicates"))


def _items_rule(items: Schema) -> Check:
    plain = _plain_type(items, items.raw)
    cell: list[Check] = []

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if not cell:
            cell.append(_compile(items))
        rule = cell[0]
        for index, item in enumerate(value):
            if type(item) is not plain:
                rule(item, (path, index), found)

    return check


def _combinations(schema: Schema) -> Iterable[Check]:
    """Yield the rules that combine others, in Kubernetes' order."""
    raw = schema.raw
    if raw.get("anyOf"):
        yield _any_of(_nested(schema, "anyOf"))
    if raw.get("oneOf") and not schema.int_or_string and schema.format != "quantity":
        yield _one_of(_nested(schema, "oneOf"))
    if raw.get("allOf"):
        yield _all_of(_nested(schema, "allOf"))
    if isinstance(raw.get("not"), dict):
        yield _not(_compile(schema.definitions.resolve(raw["not"])))


def _nested(schema: Schema, key: str) -> list[Check]:
    return [_compile(schema.definitions.resolve(raw)) for raw in schema.raw[key]]


def _failures(check: Check, value: Any, path: Path) -> list[Finding]:
    inner: list[Finding] = []
    check(value, path, inner)
    # The node to forgive is the one the combination stands on, not one inside it.
    return [Finding(path, finding.error) for finding in inner]


def _any_of(alternatives: list[Check]) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        best: list[Finding] | None = None
        for alternative in alternatives:
            failures = _failures(alternative, value, path)
            if not failures:
                return
            if best is None or len(failures) < len(best):
                best = failures
        found.append(findings.unmet(path, "must validate at least one schema (anyOf)"))
        found.extend(best or ())

    return check


def _one_of(alternatives: list[Check]) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        tried = [_failures(alternative, value, path) for alternative in alternatives]
        valid = sum(not failures for failures in tried)
        if valid == 1:
            return
        seen = f"Found {valid} valid alternatives" if valid else "Found none valid"
        text = f"must validate one and only one schema (oneOf). {seen}"
        found.append(findings.unmet(path, text))
        if not valid:
            found.extend(sorted(tried, key=len)[0])

    return check


def _all_of(parts: list[Check]) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        tried = [_failures(part, value, path) for part in parts]
        failed = [failures for failures in tried if failures]
        if not failed:
            return
        for failures in failed:
            found.extend(failures)
        none = ". None validated" if len(failed) == len(parts) else ""
        found.append(findings.unmet(path, f"must validate all the schemas (allOf){none}"))

    return check


def _not(refused: Check) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if not _failures(refused, value, path):
            found.append(findings.unmet(path, "must not validate the schema (not)"))

    return check


_ROOTS: Final[Roots[Check]] = Roots(_compile)
