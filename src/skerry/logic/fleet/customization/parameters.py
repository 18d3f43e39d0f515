"""Parameters in text: ``%(name)`` stands for what a Location says of *name*.

The rules are those of the first implementation, oddities included, because objects in use rely on
them: an unknown name is left as it stands; ``%%`` stays ``%%`` and protects what follows, so
``%%(a)`` is not expanded; a last ``%`` is kept; ``%(a`` at the very end counts as ``%(a)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Values = Mapping[str, str]

# "%%" comes first, so that a protected parenthesis is passed over with its percent signs.
_PARAMETER = re.compile(r"%%|%\(([^)]*)(?:\)|\Z)")


def location_values(location: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters a Location gives: its annotations, overruled by its labels."""
    metadata = location.get("metadata") or {}
    return {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}


def expanded_text(text: str, values: Values) -> str:
    """Return *text* with every known parameter replaced by its value, once.

    What a value brings in is not expanded again.
    """
    if "%(" not in text:
        return text

    def one(found: re.Match[str]) -> str:
        name = found[1]
        return found[0] if name is None else values.get(name, found[0])

    return _PARAMETER.sub(one, text)


def missing_names(text: str, values: Values) -> list[str]:
    """Return the parameters in *text* that *values* do not have, each once, in order."""
    names = (found[1] for found in _PARAMETER.finditer(text) if found[1] is not None)
    return list(dict.fromkeys(name for name in names if name not in values))


def expanded(value: Any, values: Values) -> Any:
    """Return *value* with the strings in it expanded; keys of maps stay as they are."""
    if isinstance(value, str):
        return expanded_text(value, values)
    if isinstance(value, dict):
        return {key: expanded(member, values) for key, member in value.items()}
    if isinstance(value, list):
        return [expanded(item, values) for item in value]
    return value
