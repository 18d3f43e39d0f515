"""Conversion between the versions of a schema, as an APIConversion words it.

A rule takes a field of one version to a field of the other, perhaps transformed by an expression;
what the other version does not know is dropped. A field that must not be lost is named in
``preserve``: it travels in an annotation and is put back when the object returns to its version.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from skerry.api.errors import FieldError, InternalError
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.cel.transformations import Transformation, TransformationError
from skerry.logic.machinery.schema.pruning import prune
from skerry.logic.machinery.work import Work

PRESERVED = "preserve.conversion.apis.kcp.io/"
_ABSENT = object()
# What all transformations of one object may cost, some milliseconds: objects are converted whenever
# they are read, and many at once in a list.
_OBJECT_UNITS = 20_000
# A hundred expressions of the usual length; they are compiled when a type is first served.
TEXT_LIMIT = 4096

Path = tuple[str, ...]
Preserved = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """One field's way; without a transformation it goes as it is."""

    source: Path
    destination: Path
    transformation: Transformation | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """How objects get from one version to another."""

    rules: tuple[Rule, ...] = ()
    preserved: tuple[Path, ...] = ()


_STRAIGHT = Route()


@dataclass(frozen=True, slots=True)
class Conversions:
    """All routes between the versions of a type."""

    group: str
    routes: Mapping[tuple[str, str], Route]
    schemas: Mapping[str, Schema]

    def convert(self, obj: Object, version: str) -> Object:
        """Return *obj*, which may be changed on the way, at another version."""
        source = str(obj["apiVersion"]).rpartition("/")[2]
        if source == version:
            return obj
        route = self.routes.get((source, version), _STRAIGHT)
        try:
            work = Work(_OBJECT_UNITS)
            made = [(rule.destination, _value(rule, obj, work)) for rule in route.rules]
            _carry(obj, source, version, route)
            for destination, value in made:
                if value is not _ABSENT:
                    _put(obj, destination, value)
            _restore(obj, version)
        except (TransformationError, orjson.JSONDecodeError) as error:
            raise InternalError(f"error converting: {error}") from error
        obj["apiVersion"] = f"{self.group}/{version}" if self.group else version
        prune(self.schemas[version], obj)
        return obj


def compiled(
    conversion: Mapping[str, Any], group: str, schemas: Mapping[str, Schema]
) -> tuple[Conversions, list[FieldError]]:
    """Return what an APIConversion says for a type of these versions, and what is wrong in it."""
    routes: dict[tuple[str, str], Route] = {}
    errors: list[FieldError] = []
    if _text_length(conversion) > TEXT_LIMIT:
        detail = f"all transformations together have at most {TEXT_LIMIT} characters"
        return Conversions(group, routes, schemas), [FieldError.forbidden("spec", detail)]
    for index, each in enumerate((conversion.get("spec") or {}).get("conversions") or []):
        path = f"spec.conversions[{index}]"
        for end in ("from", "to"):
            if each[end] not in schemas:
                detail = "unable to find structural schema for version"
                errors.append(FieldError.invalid(f"{path}.{end}", each[end], detail))
        source = schemas.get(each["from"])
        if source is not None:
            rules = _rules(each.get("rules") or (), source, f"{path}.rules", errors)
            preserved = tuple(_path(field) for field in each.get("preserve") or ())
            routes[(each["from"], each["to"])] = Route(rules, preserved)
    return Conversions(group, routes, schemas), errors


def _text_length(conversion: Mapping[str, Any]) -> int:
    return sum(
        len(rule.get("transformation") or "")
        for each in (conversion.get("spec") or {}).get("conversions") or []
        for rule in each.get("rules") or ()
    )


def _rules(
    raw: Sequence[Mapping[str, Any]], schema: Schema, path: str, errors: list[FieldError]
) -> tuple[Rule, ...]:
    found = []
    for index, each in enumerate(raw):
        source, where = _path(each["field"]), f"{path}[{index}]"
        node, problem = _node(schema, source)
        text = each.get("transformation") or ""
        if node is None:
            errors.append(FieldError.invalid(f"{where}.field", each["field"], problem))
            continue
        try:
            made = Transformation.compiled(text, node) if text else None
        except TransformationError as error:
            detail = f"error compiling CEL program: {error}"
            errors.append(FieldError.invalid(f"{where}.transformation", text, detail))
            continue
        found.append(Rule(source, _path(each["destination"]), made))
    return tuple(found)


def _node(schema: Schema, path: Path) -> tuple[Schema | None, str]:
    """Return the schema at *path*, or why there is none."""
    cursor = schema
    for count, name in enumerate(path):
        if cursor.type != "object":
            return None, f'expected field "{".".join(path[:count])}" to be an object'
        below = cursor.child(name)
        if below is None:
            return None, f'field "{".".join(path[: count + 1])}" doesn\'t exist'
        cursor = below
    return cursor, ""


def _path(field: str) -> Path:
    return tuple(field.removeprefix(".").split("."))


def _value(rule: Rule, obj: Object, work: Work) -> Any:
    value = _get(obj, rule.source)
    if value is _ABSENT:
        return value
    if rule.transformation is not None:
        return rule.transformation.apply(value, work)
    return copy.deepcopy(value)


def _get(obj: Object, path: Path) -> Any:
    node: Any = obj
    for name in path:
        if not isinstance(node, dict) or name not in node:
            return _ABSENT
        node = node[name]
    return node


def _put(obj: Object, path: Path, value: Any) -> None:
    node = obj
    for name in path[:-1]:
        below = node.setdefault(name, {})
        if not isinstance(below, dict):
            raise TransformationError(f'field "{".".join(path)}" is below what is no object')
        node = below
    node[path[-1]] = value


def _carry(obj: Object, source: str, version: str, route: Route) -> None:
    """Take along what the other version would lose, unless the object is on its way back."""
    annotations = obj["metadata"].get("annotations") or {}
    if f"{PRESERVED}{version}" in annotations:
        return
    kept: Preserved = {
        ".".join(path): value
        for path in route.preserved
        if (value := _get(obj, path)) is not _ABSENT
    }
    if kept:
        text = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode()
        obj["metadata"]["annotations"] = {**annotations, f"{PRESERVED}{source}": text}


def _restore(obj: Object, version: str) -> None:
    """Put back what was taken along from *version*."""
    annotations = obj["metadata"].get("annotations") or {}
    text = annotations.pop(f"{PRESERVED}{version}", None)
    if text is None:
        return
    if not annotations:
        del obj["metadata"]["annotations"]
    for field, value in orjson.loads(text).items():
        _put(obj, _path(field), value)
