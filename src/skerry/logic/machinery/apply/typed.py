"""What of an object counts as a field, and which fields differ between two objects.

The schema decides how far fields go down. Granular maps and associative lists (``set`` and ``map``)
are entered, each element being known by its value or keys; everything else, atomic lists and maps
included, is one field, a *leaf*. Where no schema is known it is deduced from the value: maps are
entered, lists are leaves.

``null`` takes whatever form it is compared with. Two elements of one key may not be applied, but
may exist (clients that update are not stopped); such a group counts as one leaf.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from skerry.api.objects import Object
from skerry.api.schema import MISSING, Schema
from skerry.kit.caching import WeightedCache
from skerry.logic.machinery.apply.blank import blank_for, is_lasting
from skerry.logic.machinery.apply.fieldset import (
    FieldSet,
    element_order,
    key_element,
    union,
    value_element,
)
from skerry.logic.machinery.patch.values import equal

# Defaults of list-map keys that the published schema data leaves out. Without them two spellings
# of one port, with and without its protocol, would be two ports.
_KEY_DEFAULTS: Final[Mapping[tuple[str, str], Any]] = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
}

# Written by the server itself, so owned by nobody.
UNTRACKED_METADATA: Final = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)


_SORTED: Final = orjson.OPT_SORT_KEYS
# Made once: a union written where it is used is made anew each time.
_CONTAINERS: Final = (dict, list)
_CONTAINER_TYPES: Final = frozenset(_CONTAINERS)
# Longer lists of names are worked out each time: what clients choose must not fill the memory.
_MAX_KNOWN_NAMES: Final = 32
_MAX_KNOWN_LENGTH: Final = 2048


class NotTyped(ValueError):
    """A value does not have the form its schema asks for; the message says where and why."""


class Comparison(NamedTuple):
    """The fields that differ between two objects; no field is in two of the sets."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def same(self) -> bool:
        return not (self.added or self.modified or self.removed)


# A node for each of added, modified and removed; None where there is nothing.
_Nodes = tuple[FieldSet | None, FieldSet | None, FieldSet | None]
_SAME: Final[_Nodes] = (None, None, None)


def is_granular_map(schema: Schema | None) -> bool:
    """Tell whether a map of this schema has fields of its own rather than being one."""
    return schema is None or schema.granular


def is_associative(schema: Schema | None) -> bool:
    """Tell whether elements of a list of this schema are known by value or key, not by place."""
    return schema is not None and schema.associative


def list_keys(schema: Schema) -> tuple[str, ...]:
    """Return the key fields of a list-map in order of name; none for a set."""
    if schema.list_type == "map":
        return _sorted(schema.list_keys)
    if schema.merge_key and "x-kubernetes-list-type" not in schema.raw:
        return (schema.merge_key,)
    return ()


@lru_cache(maxsize=1024)
def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(names))


def element_of(item: Any, schema: Schema) -> str:
    """Return the path element of one item of an associative list."""
    keys = list_keys(schema)
    try:
        return _key_element(item, keys, schema) if keys else _value_element(item)
    except TypeError as error:
        # YAML can say numbers that JSON encoders refuse.
        raise NotTyped(f"element cannot be identified by its value: {error}") from error


def _value_element(item: Any) -> str:
    if isinstance(item, dict):
        raise NotTyped("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise NotTyped("not supported: associative list with lists as elements")
    if item is None:
        raise NotTyped("associative list without keys has an element that's an explicit null")
    return value_element(item)


def _key_element(item: Any, keys: tuple[str, ...], schema: Schema) -> str:
    if item is None:
        raise NotTyped("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise NotTyped("associative list with keys may not have non-map elements")
    pairs: list[tuple[str, Any]] = []
    for name in keys:
        value = item.get(name, MISSING)
        if value is MISSING:
            value = _key_default(schema.items, name)
        pairs.append((name, value))
    return key_element(pairs)


def _key_default(items: Schema | None, name: str) -> Any:
    default = _known_default(items, name)
    if default is None:
        raise NotTyped(
            f'associative list with keys has an element that omits key field "{name}" '
            "(and doesn't have default value)"
        )
    return default


def _known_default(items: Schema | None, name: str) -> Any:
    """Return the default of a key field; None if it has none."""
    if items is None:
        return None
    field = items.field(name)
    if field is not None and field.default is not MISSING:
        return field.default
    return _KEY_DEFAULTS.get((items.name, name))


def essential_keys(schema: Schema) -> list[str]:
    """Return the key fields an item of a list-map cannot do without."""
    return [name for name in list_keys(schema) if _known_default(schema.items, name) is None]


def grouped(items: list[Any] | None, schema: Schema) -> dict[str, list[Any]]:
    """Return the items of an associative list by path element, in order of appearance."""
    groups: dict[str, list[Any]] = {}
    for item in items or ():
        groups.setdefault(element_of(item, schema), []).append(item)
    return groups


def fields_of(value: Any, schema: Schema | None) -> FieldSet:
    """Return the fields that an applied configuration names, without what nobody owns."""
    return _fields_node(value, schema) or {}


def _fields_node(value: Any, schema: Schema | None) -> FieldSet | None:
    """Return the node of one value; None where it names nothing (an empty list, say)."""
    if isinstance(value, dict):
        return _map_fields(value, schema) if is_granular_map(schema) else {}
    if isinstance(value, list) and schema is not None and is_associative(schema):
        return _list_fields(value, schema)
    return {}


def _map_fields(value: Object, schema: Schema | None) -> FieldSet | None:
    node: FieldSet = {}
    for name in sorted(value):
        member = value[name]
        declared = schema.field(name) if schema is not None else None
        child_schema = declared or (schema.additional if schema is not None else None)
        child = _fields_node(member, child_schema) if member or member == [] else {}
        # Members of a free map are things one can own; declared fields are just its parts.
        if declared is None and (child is None or (child and "." not in child)):
            child = {".": {}, **(child or {})} if child else {}
        if child is not None:
            node["f:" + name] = child
    return node or None


def _list_fields(value: list[Any], schema: Schema) -> FieldSet | None:
    node: FieldSet = {}
    groups = grouped(value, schema)
    for element in sorted(groups, key=element_order):
        group = groups[element]
        child = _fields_node(group[0], schema.items) if len(group) == 1 else None
        node[element] = {".": {}, **child} if child else {}
    return node or None


def everything(value: Any, schema: Schema | None) -> FieldSet:
    """Return the node of a value that is wholly new: itself and all below it are members."""
    if isinstance(value, dict):
        if not value or not is_granular_map(schema):
            return {}
        if _CONTAINER_TYPES.isdisjoint(map(type, value.values())):
            return _flat_map(tuple(value))
        node: FieldSet = {".": {}}
        for name in sorted(value):
            member = value[name]
            if isinstance(member, _CONTAINERS):
                child = schema.child(name) if schema is not None else None
                node["f:" + name] = everything(member, child)
            else:
                node["f:" + name] = {}
        return node
    if value and isinstance(value, list) and schema is not None and is_associative(schema):
        node = {".": {}}
        groups = grouped(value, schema)
        for element in sorted(groups, key=element_order):
            group = groups[element]
            node[element] = everything(group[0], schema.items) if len(group) == 1 else {}
        return node
    return {}


def _flat_map(names: tuple[str, ...]) -> FieldSet:
    """Return the node of a map that holds no map or list: labels, data, a reference.

    Objects of one maker have the same names in the same order. Sets are never changed, so that
    all may share one node.
    """
    few = len(names) <= _MAX_KNOWN_NAMES and sum(map(len, names)) <= _MAX_KNOWN_LENGTH
    return _known_map(names) if few else _new_map(names)


def _new_map(names: tuple[str, ...]) -> FieldSet:
    return {".": {}, **{f"f:{name}": {} for name in sorted(names)}}


_known_map = lru_cache(maxsize=512)(_new_map)


def fields_of_new(new: Object, schema: Schema | None) -> FieldSet:
    """Return the fields of *new* that a blank object of its type does not have.

    The same as what ``compare`` with that finds added or modified; most creates need nothing else.
    """
    blank = blank_for(schema)
    if schema is None or not is_lasting(schema):
        return _beyond(blank, _tracked(new), schema)
    node: FieldSet = {}
    tracked = _tracked(new)
    for name in sorted(tracked):
        value = tracked[name]
        below: FieldSet | None = {}
        if name in blank or isinstance(value, _CONTAINERS):
            below = _known_member(name, value, blank, schema)
        if below is not None:
            node["f:" + name] = below
    return node


# By the schema of the object, the name and the JSON of the member. Many objects are made from one
# template, and their specs have the same fields.
_KNOWN_MEMBERS: Final[WeightedCache[tuple[Schema, str, bytes], tuple[FieldSet | None]]] = (
    WeightedCache(4 * 1024 * 1024)
)
_MAX_KNOWN_BYTES: Final = 16 * 1024


def _known_member(
    name: str, value: Any, blank: Mapping[str, Any], schema: Schema
) -> FieldSet | None:
    if type(value) is not dict or _CONTAINER_TYPES.isdisjoint(map(type, value.values())):
        return _member_beyond(name, value, blank, schema)
    try:
        text = orjson.dumps(value)
    except TypeError:
        return _member_beyond(name, value, blank, schema)
    key = (schema, name, text)
    known = _KNOWN_MEMBERS.get(key)
    if known is None:
        known = (_member_beyond(name, value, blank, schema),)
        if len(text) <= _MAX_KNOWN_BYTES:
            # A set of fields takes some times as much as the text it was made of.
            _KNOWN_MEMBERS.put(key, known, 5 * len(text))
    return known[0]


def _beyond(blank: Mapping[str, Any], new: Object, schema: Schema | None) -> FieldSet:
    node: FieldSet = {}
    for name in sorted(new):
        below = _member_beyond(name, new[name], blank, schema)
        if below is not None:
            node["f:" + name] = below
    return node


def _member_beyond(
    name: str, value: Any, blank: Mapping[str, Any], schema: Schema | None
) -> FieldSet | None:
    """Return the node of one member; None where there is nothing that *blank* has not."""
    child = schema.child(name) if schema is not None else None
    before = blank.get(name, MISSING)
    if before is MISSING:
        return everything(value, child)
    if isinstance(value, dict) and isinstance(before, dict) and is_granular_map(child):
        return _beyond(before, value, child) or None
    added, modified, _ = _compare(before, value, child)
    if added is None or modified is None:
        return added if modified is None else modified
    return union(added, modified)


def compare(old: Object, new: Object, schema: Schema | None) -> Comparison:
    """Return which fields *new* adds, modifies and removes, leaving out what nobody owns."""
    nodes = _compare_maps(_tracked(old), _tracked(new), schema)
    return Comparison(*(node or {} for node in nodes))


def _tracked(obj: Object) -> Object:
    """Return *obj* without the fields that are never tracked."""
    kept = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        kept["metadata"] = {
            name: value for name, value in metadata.items() if name not in UNTRACKED_METADATA
        }
    return kept


def _compare(old: Any, new: Any, schema: Schema | None) -> _Nodes:
    """Compare two values that differ, or may."""
    if _is_map(old, new, schema):
        return _compare_maps(old or {}, new or {}, schema)
    if _is_list(old, new) and schema is not None and is_associative(schema):
        return _compare_lists(old or [], new or [], schema)
    return _compare_leaves(old, new, schema)


def _is_map(old: Any, new: Any, schema: Schema | None) -> bool:
    forms = (old if old is not None else new, new if new is not None else old)
    return (
        isinstance(forms[0], dict)
        and isinstance(forms[1], dict)
        and is_granular_map(schema)
        and bool(old or new)
    )


def _is_list(old: Any, new: Any) -> bool:
    forms = (old if old is not None else new, new if new is not None else old)
    return isinstance(forms[0], list) and isinstance(forms[1], list) and bool(old or new)


def _compare_leaves(old: Any, new: Any, schema: Schema | None) -> _Nodes:
    """Compare leaves, or a value with one of another form, whose own fields come or go."""
    if equal(old, new):
        return _SAME
    if type(old) is type(new):
        return None, {}, None
    return _below(everything(new, schema)), {}, _below(everything(old, schema))


def _below(node: FieldSet) -> FieldSet | None:
    return {key: child for key, child in node.items() if key != "."} or None


def _compare_maps(old: Object, new: Object, schema: Schema | None) -> _Nodes:
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    for name in sorted(new):
        value = new[name]
        before = old.get(name, MISSING)
        if before is value or (before == value and _alike(before, value)):
            continue
        child = schema.child(name) if schema is not None else None
        if before is MISSING:
            added["f:" + name] = everything(value, child)
            continue
        nodes = _compare(before, value, child)
        _keep("f:" + name, nodes, (added, modified, removed))
    for name in sorted(old.keys() - new.keys()):
        child = schema.child(name) if schema is not None else None
        removed["f:" + name] = everything(old[name], child)
    # Removed members were met last, wherever their names sort.
    return added or None, modified or None, dict(sorted(removed.items())) or None


def _alike(old: Any, new: Any) -> bool:
    """Tell whether two values that are equal to Python are the same JSON.

    To Python ``True`` is ``1``; a manager that turns one into the other has changed something. The
    encodings tell, at a tenth of the cost of looking at every value; where they differ for any
    other reason the caller looks closer and finds nothing.
    """
    if not isinstance(old, _CONTAINERS):
        return type(old) is type(new)
    try:
        return orjson.dumps(old, option=_SORTED) == orjson.dumps(new, option=_SORTED)
    except TypeError:
        return False


def _keep(element: str, nodes: _Nodes, into: tuple[FieldSet, FieldSet, FieldSet]) -> None:
    for node, target in zip(nodes, into, strict=True):
        if node is not None:
            target[element] = node


def _compare_lists(old: list[Any], new: list[Any], schema: Schema) -> _Nodes:
    before, after = grouped(old, schema), grouped(new, schema)
    into: tuple[FieldSet, FieldSet, FieldSet] = ({}, {}, {})
    for element in sorted({**before, **after}, key=element_order):
        theirs, ours = before.get(element, []), after.get(element, [])
        if theirs != ours or not _alike(theirs, ours):
            _keep(element, _compare_groups(theirs, ours, schema.items), into)
    return into[0] or None, into[1] or None, into[2] or None


def _compare_groups(old: list[Any], new: list[Any], items: Schema | None) -> _Nodes:
    """Compare the items of one key; more than one of them are a leaf on their side."""
    if len(old) >= 2 and len(new) >= 2:
        return _SAME if equal(old, new) else (None, {}, None)
    if len(old) >= 2:
        return (everything(new[0], items) if new else None), None, {}
    if len(new) >= 2:
        return {}, None, (everything(old[0], items) if old else None)
    if not old:
        return everything(new[0], items), None, None
    if not new:
        return None, None, everything(old[0], items)
    return _compare(old[0], new[0], items)
