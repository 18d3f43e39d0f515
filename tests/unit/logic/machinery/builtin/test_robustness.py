"""Whatever a client sends, as long as its types are right, is judged and never breaks a rule.

Objects are drawn from the schemas themselves: any field may be missing, null, empty or odd.
"""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.builtin import builtin_resources, validate_metadata
from skerry.logic.machinery.resource import Resource

WORDS = ["", "a", "x-1", "Always", "None", "TCP", "Pod", "10.0.0.1", "1", "a/b", "é", "Container",
         "cpu", "RollingUpdate", "ClusterIP", "0 * * * *", "v1", "Bad Name", "25%", "Indexed",
         "hugepages-2Mi", "example.com/x", "storage", "10.0.0.0/8", "Localhost"]  # fmt: skip
NUMBERS = [0, 1, -1, 80, 65536, 2**31]
QUANTITIES = ["1", "100m", "1Gi", "-1", "0.5", "nonsense", 2, 0.25]


def drawn(schema: Schema | None, random: Random, depth: int) -> Any:
    """Return some value of the right type."""
    if schema is None or depth <= 0:
        return {} if schema is None or schema.type == "object" else drawn_leaf(schema, random)
    if schema.format == "quantity":
        return random.choice(QUANTITIES)
    if schema.int_or_string:
        return random.choice([*NUMBERS, *WORDS])
    if schema.type == "object":
        return drawn_object(schema, random, depth)
    if schema.type == "array":
        items = [drawn(schema.items, random, depth - 1) for _ in range(random.randrange(3))]
        return [None if random.random() < 0.03 else item for item in items]
    return drawn_leaf(schema, random)


def drawn_object(schema: Schema, random: Random, depth: int) -> Any:
    names = list(schema.property_names)
    if not names:
        if schema.additional is None:
            return {}
        keys = random.sample(WORDS, random.randrange(3))
        return {
            key: None if random.random() < 0.1 else drawn(schema.additional, random, depth - 1)
            for key in keys
        }
    chosen = [name for name in names if random.random() < 0.45]
    return {
        name: None if random.random() < 0.05 else drawn(schema.field(name), random, depth - 1)
        for name in chosen
    }


def drawn_leaf(schema: Schema, random: Random) -> Any:
    if schema.type == "integer":
        return random.choice(NUMBERS)
    if schema.type == "number":
        return 1.5
    if schema.type == "boolean":
        return random.random() < 0.5
    if schema.type == "array":
        return []
    return random.choice(WORDS)


def drawn_instance(kind: Resource, random: Random) -> Object:
    obj: Object = drawn(kind.schema, random, 9)
    obj["apiVersion"], obj["kind"] = kind.info.api_version, kind.info.kind
    metadata = obj.get("metadata") or {}
    obj["metadata"] = {**metadata, "name": random.choice(["x", "x-1"]), "uid": "u"}
    if kind.info.namespaced:
        obj["metadata"]["namespace"] = "default"
    return obj


KINDS = [kind for kind in builtin_resources() if "update" in kind.info.verbs]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.info.resource}.{kind.info.group}")
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_odd_objects_are_judged_and_defaulting_twice_changes_nothing(
    kind: Resource, seed: int
) -> None:
    random = Random(seed)
    old, new = drawn_instance(kind, random), drawn_instance(kind, random)
    for obj in (old, new):
        kind.default(obj)
        again = deepcopy(obj)
        kind.default(again)
        assert again == obj
    kind.prepare_create(old)
    kind.prepare_update(new, old)
    errors = validate_metadata(old, kind.info.namespaced, kind.check_name)
    errors += validate_metadata(new, kind.info.namespaced, kind.check_name, old)
    errors += kind.validate_create(old)
    errors += kind.validate_update(new, old)
    errors += kind.validate_status(new, old)
    assert all(isinstance(error, FieldError) for error in errors)
    assert all(isinstance(text, str) for text in kind.warnings(new))
    assert all(isinstance(read(new), str) for read in kind.selectable_fields.values())
    assert kind.grace_seconds(new) in (None, 0, 1) or kind.info.kind == "Pod"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.info.resource}.{kind.info.group}")
def test_bare_objects_are_judged(kind: Resource) -> None:
    obj: Object = {"apiVersion": kind.info.api_version, "kind": kind.info.kind, "metadata": {}}
    kind.default(obj)
    kind.prepare_create(obj)
    kind.validate_create(obj)
    kind.prepare_update(obj, {"metadata": {}})
    kind.validate_update(obj, {"metadata": {}})
    kind.validate_status({"metadata": {}}, {"metadata": {}})
    kind.warnings({"metadata": {}})
