"""Field sets written under an older schema, read under today's.

If a map or list that was granular has become atomic, owners of anything inside now own it as a
whole. The other way round needs nothing: what was owned as a whole stays owned as a whole.
"""

from __future__ import annotations

from skerry.api.schema import Schema
from skerry.logic.machinery.apply.fieldset import FieldSet
from skerry.logic.machinery.apply.typed import is_associative, is_granular_map


def reconciled(fields: FieldSet, schema: Schema | None) -> FieldSet:
    """Return *fields* as *schema* would have them; the very same set if it changes nothing."""
    result = fields
    for key, node in fields.items():
        if key == "." or not node:
            continue
        child = _child(key, schema)
        if child is None:
            continue
        now = {} if _is_leaf(child) else reconciled(node, child)
        if now is node:
            continue
        if result is fields:
            result = dict(fields)
        result[key] = now
    return result


def _child(key: str, schema: Schema | None) -> Schema | None:
    if schema is None:
        return None
    return schema.child(key[2:]) if key[0] == "f" else schema.items


def _is_leaf(schema: Schema) -> bool:
    """Tell whether nothing inside can be owned by itself; a scalar with fields is left alone."""
    if schema.type == "array":
        return not is_associative(schema)
    return schema.type == "object" and not is_granular_map(schema)
