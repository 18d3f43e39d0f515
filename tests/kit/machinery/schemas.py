"""Schemas and values for the tests: examples, and Hypothesis strategies that fit each other."""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from skerry.api.schema import Definitions

CRON_TAB: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["cronSpec"],
            "properties": {
                "cronSpec": {"type": "string", "pattern": "^[0-9*/ ]+$", "maxLength": 20},
                "image": {"type": "string", "minLength": 2},
                "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
                "mode": {"type": "string", "enum": ["Slow", "Fast"]},
                "port": {"x-kubernetes-int-or-string": True},
                "env": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "value": {"type": "string", "default": "none"},
                        },
                    },
                },
                "zones": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "maxItems": 3,
                    "items": {"type": "string"},
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
    },
}


@lru_cache
def builtin() -> Definitions:
    """Return the built-in definitions, read from the installed data without importing it."""
    spec = importlib.util.find_spec("kubernetes_validate")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / "kubernetes-json-schema/v1.32.0-local/_definitions.json"
    return Definitions(json.loads(file.read_text())["$defs"])


_names = st.sampled_from(["a", "b", "c", "d", "spec"])
_strings = st.text(max_size=5)


@st.composite
def _object(draw: st.DrawFn, children: st.SearchStrategy[Any]) -> dict[str, Any]:
    members = draw(st.dictionaries(_names, children, max_size=4))
    required = [name for name in members if draw(st.booleans())]
    raw: dict[str, Any] = {"type": "object", "properties": members}
    return {**raw, "required": required} if required else raw


def _with_default(raw: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Maybe give a scalar schema a default that fits it."""
    return values_of(raw).map(lambda value: {**raw, "default": value}) | st.just(raw)


_scalars: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"type": "string"}),
    st.just({"type": "boolean"}),
    st.just({"type": "integer", "minimum": 0, "maximum": 9}),
    st.just({"type": "number"}),
    st.just({"type": "string", "enum": ["x", "y"]}),
    st.just({"type": "string", "maxLength": 3, "minLength": 1}),
    st.just({"type": "string", "nullable": True}),
    st.just({"x-kubernetes-int-or-string": True}),
    st.just({"type": "string", "format": "ipv4"}),
).flatmap(_with_default)

schemas: st.SearchStrategy[dict[str, Any]] = _object(
    st.recursive(
        _scalars,
        lambda inner: st.one_of(
            _object(inner),
            inner.map(lambda raw: {"type": "array", "items": raw, "maxItems": 4}),
            inner.map(
                lambda raw: {
                    "type": "object",
                    "additionalProperties": {k: v for k, v in raw.items() if k != "default"},
                }
            ),
        ),
        max_leaves=8,
    )
)


def values_of(raw: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values that fit *raw*, which must be one of ``schemas``."""
    strategy = _plain_values_of(raw)
    return strategy | st.none() if raw.get("nullable") else strategy


def _plain_values_of(raw: dict[str, Any]) -> st.SearchStrategy[Any]:
    if raw.get("x-kubernetes-int-or-string"):
        return st.integers(0, 99) | _strings
    if "enum" in raw:
        return st.sampled_from(raw["enum"])
    if raw.get("format") == "ipv4":
        return st.ip_addresses(v=4).map(str)
    kind = raw["type"]
    if kind == "object":
        return _objects_of(raw)
    if kind == "array":
        return st.lists(values_of(raw["items"]), max_size=raw["maxItems"])
    return {
        "string": st.text(min_size=raw.get("minLength", 0), max_size=raw.get("maxLength", 5)),
        "boolean": st.booleans(),
        "integer": st.integers(raw.get("minimum", 0), raw.get("maximum", 9)),
        "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5),
    }[kind]


def _objects_of(raw: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    if "additionalProperties" in raw:
        return st.dictionaries(_names, values_of(raw["additionalProperties"]), max_size=3)
    members = raw["properties"]
    required = raw.get("required", [])
    return st.fixed_dictionaries(
        {name: values_of(members[name]) for name in required},
        optional={name: values_of(members[name]) for name in members if name not in required},
    )


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | _strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=8,
)
