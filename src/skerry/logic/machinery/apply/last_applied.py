"""From client-side to server-side apply with kubectl, without conflicts with oneself.

``kubectl apply`` used to remember what it applied in an annotation, owned by an update manager.
When ``kubectl apply --server-side`` comes to such an object, fields that still hold what the
annotation says are kubectl's own: taking them over is no conflict. And as long as the annotation
is there it is kept true, so that one can go back. Both only for the manager ``kubectl``, so that
any other name opts out.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import orjson

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply.fieldset import FieldSet, Path, difference, has
from skerry.logic.machinery.apply.typed import NotTyped, compare, fields_of

MANAGER: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"

_Owner = TypeVar("_Owner")


def _annotations(obj: Object) -> dict[str, Any]:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def uncontested_fields(live: Object, api_version: str, schema: Schema | None) -> FieldSet:
    """Return the fields that still are as client-side apply left them."""
    text = _annotations(live).get(ANNOTATION)
    if not isinstance(text, str):
        return {}
    try:
        last = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != api_version:
        return {}
    try:
        fields = fields_of(last, schema)
        for changed in compare(last, live, schema):
            fields = difference(fields, changed)
    except NotTyped:
        return {}
    return fields


def remaining(conflicts: list[tuple[_Owner, Path]], allowed: FieldSet) -> list[tuple[_Owner, Path]]:
    """Return the conflicts over anything but the *allowed* fields."""
    return [(owner, path) for owner, path in conflicts if not has(allowed, path)]


def updated(obj: Object, applied: Object) -> Object:
    """Return *obj* with the annotation, if it has one, saying what was applied now."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    text = _encoded(applied)
    if annotations[ANNOTATION] == text:
        return obj
    metadata = {**obj["metadata"], "annotations": {**annotations, ANNOTATION: text}}
    return {**obj, "metadata": metadata}


def _encoded(applied: Object) -> str:
    """Return *applied* as kubectl writes it: without the annotation itself, keys sorted."""
    annotations = _annotations(applied)
    if ANNOTATION in annotations:
        kept = {name: value for name, value in annotations.items() if name != ANNOTATION}
        applied = {**applied, "metadata": {**applied["metadata"], "annotations": kept}}
    return orjson.dumps(applied, option=orjson.OPT_SORT_KEYS).decode() + "\n"
