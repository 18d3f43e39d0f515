"""The rules of built-in kinds take work in proportion to the object, list by list.

Every list and map of these kinds, found by their schemas, is filled with items that are all
different, and with items that are all alike. What a rule compares with a list by C code alone is
not seen by the count, so the modules are read for that, too.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import skerry.logic
import skerry.server
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply import track_update
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.schema import prune, type_errors
from skerry.server.catalogue import builtin_types
from tests.kit.counting import growth

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = (
    "pods", "services", "nodes", "persistentvolumes", "ingresses", "networkpolicies",
    "resourcequotas", "limitranges", "cronjobs", "endpointslices", "clusterroles", "secrets",
    "horizontalpodautoscalers", "certificatesigningrequests", "statefulsets",
)  # fmt: skip
RESOURCES = {
    r.info.resource: r
    for r in builtin_types()
    if r.info.resource in KINDS and r.info.version == r.storage_version
}
Way = tuple[str | int, ...]


def lists(schema: Schema, way: Way = (), depth: int = 6) -> Iterator[tuple[Way, Schema]]:
    """Yield every list and map of *schema*, with the way to it."""
    if depth < 0 or way[:1] == ("metadata",):
        return
    if schema.type == "array" and schema.items is not None:
        yield way, schema
        yield from lists(schema.items, (*way, 0), depth - 1)
    elif schema.property_names:
        for name, child in schema.properties():
            yield from lists(child, (*way, name), depth - 1)
    elif schema.additional is not None:
        yield way, schema


def distinct() -> list[tuple[str, Way]]:
    """Return the lists to be tried: each type of item under each name once, whatever the kind."""
    seen: set[tuple[Any, ...]] = set()
    found = []
    for kind in KINDS:
        for way, schema in lists(RESOURCES[kind].schema):
            of = schema.items or schema.additional
            key = (of.name if of else "", of.type if of else "", way[-1])
            if key not in seen:
                seen.add(key)
                found.append((kind, way))
    return found


def sample(schema: Schema, number: int) -> Any:
    """Return a value of *schema*, which a *number* tells from others."""
    if schema.format == "quantity":
        return f"{number + 1}"
    if schema.int_or_string or schema.type in ("integer", "number"):
        return number + 1
    if schema.type == "string":
        if schema.format == "date-time":
            return "2026-01-01T00:00:00Z"
        return "YQ==" if schema.format == "byte" else f"a{number}"
    if schema.type == "boolean":
        return True
    if schema.type == "array":
        return []
    if schema.property_names:
        return {
            name: sample(child, number)
            for name, child in schema.properties()
            if child.type in ("string", "integer") or child.int_or_string
        }
    return {}


def filled(resource: Resource, way: Way, count: int, alike: bool) -> Object:
    """Return an object with *count* items in the list at *way*."""
    schema = dict(lists(resource.schema))[way]
    numbers = [0] * count if alike else range(count)
    if schema.items is not None:
        value: Any = [sample(schema.items, number) for number in numbers]
    else:
        inner = schema.additional
        value = {f"k{i}": sample(inner, n) if inner else "" for i, n in enumerate(numbers)}
    for step in reversed(way):
        value = [value] if isinstance(step, int) else {step: value}
    info = resource.info
    return {
        "apiVersion": info.api_version,
        "kind": info.kind,
        "metadata": {"name": "a", "namespace": "b", "resourceVersion": "1"},
        **value,
    }


def judged(resource: Resource, obj: Object) -> Callable[[], object]:
    """Return all that a write of *obj* computes."""

    def judge() -> None:
        new = copy.deepcopy(obj)
        prune(resource.schema, new)
        if type_errors(resource.schema, new, "K", "v1"):
            return
        resource.default(new)
        version = resource.info.api_version
        track_update(None, new, manager="m", api_version=version, now="", schema=resource.schema)
        resource.prepare_create(new)
        resource.validate_create(new)
        resource.warnings(new)
        resource.prepare_update(new, obj)
        resource.validate_update(new, obj)
        resource.validate_status(new, obj)
        for column in resource.columns:
            column.cell(new, NOW)

    def without_failure() -> None:
        # Of objects that are not whole a rule may want something: that is a matter of robustness.
        try:
            judge()
        except (KeyError, TypeError, AttributeError, IndexError):
            return

    return without_failure


WAYS = distinct()


@pytest.mark.parametrize(
    ("kind", "way"), WAYS, ids=[f"{k}.{'.'.join(map(str, w))}" for k, w in WAYS]
)
def test_judging_a_list_takes_work_in_proportion_to_it(kind: str, way: Way) -> None:
    resource = RESOURCES[kind]
    for alike in (True, False):
        made = lambda n, a=alike: judged(resource, filled(resource, way, n, a))  # noqa: E731
        assert growth(made, 12) < 2.6, "alike" if alike else "different"


# -- what is read ------------------------------------------------------------------------------

# Patterns of formatted source: a list searched in a loop that goes through it, and one that is
# copied for each item it gets.
_SEARCHED = re.compile(r"\bif .*\bin \w+\[:[a-z]\w*\]|\bin \w+\[\w+ \+ 1 :\]")
_COPIED = re.compile(r"^\s+(\w+) = \[\*\1, ", re.MULTILINE)
# Read from an administrator's file; of one finalizer, without a loop.
_ALLOWED = {"pod_security/configuration.py", "builtin/configuration.py"}


def test_no_rule_searches_what_it_has_passed_or_gathers_by_copying() -> None:
    """C code does both in one step, so that counting steps does not find them."""
    found = set()
    for package in (skerry.logic, skerry.server):
        root = Path(package.__path__[0])
        for path in root.rglob("*.py"):
            source = path.read_text()
            if _SEARCHED.search(source) or _COPIED.search(source):
                found.add(f"{path.parent.name}/{path.name}")
    assert found - _ALLOWED == set()
