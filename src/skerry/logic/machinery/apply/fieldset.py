"""Sets of fields, kept as the FieldsV1 JSON they are stored and sent as.

A set is a tree of dicts. A key names one step: ``f:<field>``, ``k:{<list-map keys>}``,
``v:<set element>`` or ``i:<index>``. A node is a *member* of the set if it is empty or holds the
key ``"."``; a node that merely leads to members is not one. So::

    {"f:spec": {"f:replicas": {}, "f:strategy": {".": {}, "f:type": {}}}}

is the set of ``.spec.replicas``, ``.spec.strategy`` and ``.spec.strategy.type``.

Working on the wire form means that reading and writing managedFields costs nothing, and that
whatever an operation leaves alone is shared with its input. In return every function here keeps
two promises: inputs are never changed, and outputs are *canonical*: no node without members, no
``"."`` without siblings, keys in Kubernetes' order. Only ``canonical`` accepts anything else.

The empty dict is the empty set at the root and a lone member anywhere below it; that is why roots
and nodes have functions of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import orjson

from skerry.kit.caching import SHORT, short_text_cache

FieldSet = dict[str, Any]
Path = tuple[str, ...]


def is_member(node: FieldSet) -> bool:
    """Tell whether the field a (non-root) *node* stands for is itself in the set."""
    return not node or "." in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields in either set."""
    result: FieldSet | None = None
    grown = False
    for key, theirs in right.items():
        ours = left.get(key)
        if ours is None:
            merged, grown = theirs, True
        else:
            merged = ours if key == "." else _union_node(ours, theirs)
            if merged is ours:
                continue
        if result is None:
            result = dict(left)
        result[key] = merged
    if result is None:
        return left
    return in_order(result) if grown else result


def union_all(sets: Iterable[FieldSet]) -> FieldSet:
    """Return the fields in any of *sets*.

    They are united in pairs, and the results in pairs: one after the other, what was gathered so
    far would be copied for each.
    """
    waiting = list(sets)
    while len(waiting) > 1:
        pairs = zip(waiting[::2], waiting[1::2], strict=False)
        united = [union(left, right) for left, right in pairs]
        waiting = [*united, *waiting[2 * len(united) :]]
    return waiting[0] if waiting else {}


def _union_node(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right:
        return left
    if left and right:
        return union(left, right)
    # One side is a lone member; the other may have children and not be a member itself.
    children = left or right
    if not children or "." in children:
        return children
    return {".": {}, **children}


def _common(left: FieldSet, right: FieldSet) -> list[tuple[str, FieldSet, FieldSet]]:
    """Return what both sets have, found by way of the smaller: a change of very many fields is
    compared with each manager's, who may own but one."""
    keys = right if len(right) <= len(left) else left
    return [(key, left[key], right[key]) for key in keys if key in left and key in right]


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields of *left* that are not in *right*; children of a field do not follow it."""
    result: FieldSet | None = None
    for key, ours, theirs in _common(left, right):
        rest = None if key == "." else _difference_node(ours, theirs)
        if rest is ours:
            continue
        if result is None:
            result = dict(left)
        if rest is None:
            del result[key]
        else:
            result[key] = rest
    return left if result is None else result


def _difference_node(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left:
        return None if is_member(right) else left
    # A lone member on the right takes away membership and nothing else.
    return _node(left, difference(left, right or {".": {}}))


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields of *left* that are neither in *right* nor below a field of *right*."""
    result: FieldSet | None = None
    for key, ours, theirs in _common(left, right):
        if key == ".":
            continue
        if is_member(theirs):
            rest = None
        else:
            rest = _node(ours, recursive_difference(ours, theirs)) if ours else ours
        if rest is ours:
            continue
        if result is None:
            result = dict(left)
        if rest is None:
            del result[key]
        else:
            result[key] = rest
    return left if result is None else result


def _node(before: FieldSet, after: FieldSet) -> FieldSet | None:
    """Return a node that had children in canonical form: nothing left is no node at all."""
    if after is before:
        return before
    if not after:
        return None
    return {} if len(after) == 1 and "." in after else after


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields in both sets."""
    if left is right:
        return left
    result: FieldSet = {}
    for key in left.keys() & right.keys():
        if key == ".":
            result[key] = {}
            continue
        common = _intersection_node(left[key], right[key])
        if common is not None:
            result[key] = common
    return in_order(result)


def _intersection_node(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left or not right:
        return {} if is_member(left) and is_member(right) else None
    common = intersection(left, right)
    if not common:
        return None
    return {} if len(common) == 1 and "." in common else common


def has(fields: FieldSet, path: Path) -> bool:
    """Tell whether the field at *path* is in the set; the root never is."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
    return bool(path) and node is not None and is_member(node)


def paths(fields: FieldSet) -> Iterator[Path]:
    """Yield every member, parents before what is below them."""
    for key, node in fields.items():
        if key == ".":
            continue
        if is_member(node):
            yield (key,)
        for rest in paths(node):
            yield (key, *rest)


def path_text(path: Path) -> str:
    """Return *path* as conflicts name it: ``.spec.containers[name="web"].image``."""
    return "".join(map(_element_text, path))


@short_text_cache(8192)
def _element_text(element: str) -> str:
    kind, text = element[0], element[2:]
    if kind == "f":
        return "." + text
    if kind == "k":
        pairs = sorted(orjson.loads(text).items())
        return "[" + ",".join(f"{name}={_value_text(value)}" for name, value in pairs) + "]"
    return f"[={_value_text(orjson.loads(text))}]" if kind == "v" else f"[{text}]"


def _value_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def in_order(node: FieldSet) -> FieldSet:
    """Return *node* with its keys in Kubernetes' order."""
    if len(node) < 2:
        return node
    keys = sorted(node)
    # Field names alone sort as they are; only list elements need their values looked at.
    if keys[-1] >= "g":
        keys.sort(key=element_order)
    return {key: node[key] for key in keys}


@short_text_cache(8192)
def element_order(element: str) -> tuple[Any, ...]:
    """Return what sorts path elements: fields, keys, values (numbers by size), then indices."""
    kind, text = element[0], element[2:]
    if kind == "f":
        return (1, text)
    if kind == "k":
        pairs = sorted(orjson.loads(text).items())
        return (2, tuple((name, _value_order(value)) for name, value in pairs))
    if kind == "v":
        return (3, _value_order(orjson.loads(text)))
    return (4, int(text)) if kind == "i" else (0,)


def _value_order(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (5, "") if value is None else (4, _value_text(value))


def canonical(raw: Any) -> FieldSet:
    """Return FieldsV1 that came from outside as a set; raise ``ValueError`` if it is none.

    Elements of an unknown kind are dropped, as Kubernetes does, so that a newer writer's entry
    can be read.
    """
    return _canonical_node(raw, 0)[0]


# No field of any object lies deeper than its own encoding can nest.
_DEEPEST = 256


def _canonical_node(raw: Any, depth: int) -> tuple[FieldSet, bool]:
    """Return a node's members below it, and whether it is a member."""
    if not isinstance(raw, dict):
        raise ValueError(f"fieldsV1: want an object, got {type(raw).__name__}")
    if depth > _DEEPEST:
        raise ValueError(f"fieldsV1: nested deeper than {_DEEPEST}")
    node: FieldSet = {}
    member = False
    for key, child in raw.items():
        if key == ".":
            member = True
            continue
        element = _canonical_element(key)
        if element is None:
            continue
        below, child_member = _canonical_node(child, depth + 1)
        found = {".": {}, **below} if below and child_member else below
        node[element] = _union_node(node[element], found) if element in node else found
    return in_order(node), member or not node


def _canonical_element(key: str) -> str | None:
    if len(key) < 2:
        raise ValueError(f"path element {key!r}: key must be 2 characters long")
    if key[1] != ":":
        raise ValueError(f"path element {key!r}: missing colon")
    kind, text = key[0], key[2:]
    if kind == "f":
        return key
    if kind not in "kvi":
        return None
    if kind == "i":
        return f"i:{int(text)}"
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"path element {key!r}: {error}") from error
    if kind == "v":
        return value_element(value)
    if not isinstance(value, dict):
        raise ValueError(f"path element {key!r}: want an object of key fields")
    return key_element(sorted(value.items()))


def key_element(pairs: list[tuple[str, Any]]) -> str:
    """Return the element that selects the list item with these key fields, sorted by name."""
    return "k:{" + ",".join(f"{_text(name)}:{_text(value)}" for name, value in pairs) + "}"


def value_element(value: Any) -> str:
    """Return the element that selects *value* in a set."""
    return "v:" + _text(value)


# What the encoder writes as an integer.
_MAX_INTEGER = 1 << 63


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return _escaped(_value_text(value))
    # 80.0 and 80 are one number and must be one key.
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_INTEGER:
        value = int(value)
    if isinstance(value, str) and len(value) > SHORT:
        return _escaped(_value_text(value))
    return _scalar(value)


@lru_cache(maxsize=8192, typed=True)
def _scalar(value: Any) -> str:
    return _escaped(_value_text(value))


def _escaped(text: str) -> str:
    """Escape what Go's encoder escapes inside strings, so that keys are equal byte for byte."""
    if text.isascii() and not ("<" in text or ">" in text or "&" in text):
        return text
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
