"""The JSON Patch that makes one object of another: exact, and small where little changed.

Only ``add``, ``replace`` and ``remove`` of members occur; a list that differs is replaced as a
whole. Unlike a merge patch it can set a member to null, so that what is rebuilt from it is the
new object to the letter: ``apply_json_patch(old, delta(old, new)) == new``.

Every syncer's stream says a change by one of these, thousands for one change of a source, and
nearly all of an object is as it was. So what is written alike is found by writing it, which is
done in C, and only the rest is looked through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

Operations = list[dict[str, Any]]


def delta(old: Mapping[str, Any], new: Mapping[str, Any]) -> Operations:
    """Return the operations that make *new* of *old*; they share values with *new*."""
    return list(_changes("", old, new))


def _changes(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in old:
        if name not in new:
            yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}
    for name, value in new.items():
        if name not in old:
            yield {"op": "add", "path": f"{path}/{_escaped(name)}", "value": value}
            continue
        before = old[name]
        if isinstance(before, dict) and isinstance(value, dict):
            if not _written_alike(before, value):
                yield from _changes(f"{path}/{_escaped(name)}", before, value)
        elif not _same(before, value):
            yield {"op": "replace", "path": f"{path}/{_escaped(name)}", "value": value}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _written_alike(old: Any, new: Any) -> bool:
    """Tell whether two values have the same text; if not, they may still say the same."""
    try:
        return orjson.dumps(old) == orjson.dumps(new)
    except TypeError:
        return False  # An integer of more than 64 bits has no text here.


def _same(old: Any, new: Any) -> bool:
    """Tell whether two values are written alike: ``1``, ``1.0`` and ``true`` are not."""
    if type(old) is not type(new):
        return False
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(_same(old[name], new[name]) for name in old)
    if isinstance(old, list):
        return _written_alike(old, new) or (len(old) == len(new) and all(map(_same, old, new)))
    return bool(old == new)
