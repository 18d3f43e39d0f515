"""Functions Kubernetes takes from CEL's extension libraries: strings, optionals, sets.

Positions count code points. A split or replacement without a limit does all of them.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Any

from skerry.logic.machinery.cel.functions import declare, reading
from skerry.logic.machinery.cel.operators import optional_member
from skerry.logic.machinery.cel.standard import duration_text, timestamp_text, to_string
from skerry.logic.machinery.cel.typed import READ_COST, Scope, charge
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.cel.values import NONE, EvaluationError, Optional_, holds, kind_of, zero

# Printing one value takes most of a microsecond.
_PRINT_COST = 6
# More digits than any number has.
_PRECISION_LIMIT = 400
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def _checked(index: int, length: int) -> int:
    if not 0 <= index <= length:
        raise EvaluationError(f"index out of range: {index}")
    return index


@declare("charAt", "string.(int) string")
def _char_at(text: str, index: int) -> str:
    index = _checked(index, len(text))
    return text[index : index + 1]


@declare("indexOf", "string.(string) int", "string.(string, int) int", weight="linear")
def _index_of(text: str, part: str, start: int = 0) -> int:
    return text.find(part, _checked(start, len(text)))


@declare("lastIndexOf", "string.(string) int", "string.(string, int) int", weight="linear")
def _last_index_of(text: str, part: str, last: int | None = None) -> int:
    if last is not None:
        text = text[: _checked(last, len(text)) + len(part)]
    # Backwards: only the search from the front takes time in proportion to the text.
    found = text[::-1].find(part[::-1])
    return -1 if found < 0 else len(text) - found - len(part)


@declare("lowerAscii", "string.() string", weight="linear")
def _lower(text: str) -> str:
    return text.translate(_LOWER)


@declare("upperAscii", "string.() string", weight="linear")
def _upper(text: str) -> str:
    return text.translate(_UPPER)


@declare("trim", "string.() string", weight="linear")
def _trim(text: str) -> str:
    return text.strip()


@declare("reverse", "string.() string", weight="linear")
def _reverse(text: str) -> str:
    return text[::-1]


def _replace_price(text: str, old: str, new: str, limit: int = -1) -> float:
    """Return what the result costs, which may be far longer than what it is made of."""
    count = text.count(old)
    if limit >= 0:
        count = min(count, limit)
    return (2 * len(text) + count * len(new)) * READ_COST


@declare(
    "replace",
    "string.(string, string) string",
    "string.(string, string, int) string",
    weight="linear",
    price=_replace_price,
)
def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def _split_price(text: str, separator: str, _: int = -1) -> float:
    # Into single characters: each becomes a member.
    return reading(text) if separator else float(len(text))


@declare(
    "split",
    "string.(string) list(string)",
    "string.(string, int) list(string)",
    weight="linear",
    price=_split_price,
)
def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    characters = list(text)
    if 0 < limit < len(characters):
        return [*characters[: limit - 1], "".join(characters[limit - 1 :])]
    return characters


@declare("substring", "string.(int) string", "string.(int, int) string", weight="linear")
def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else _checked(end, len(text))
    _checked(start, len(text))
    if start > stop:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _join_price(parts: list[str], separator: str = "") -> float:
    return len(parts) + (sum(map(len, parts)) + len(parts) * len(separator)) * READ_COST


@declare(
    "join",
    "list(string).() string",
    "list(string).(string) string",
    weight="linear",
    price=_join_price,
)
def _join(parts: list[str], separator: str = "") -> str:
    return separator.join(parts)


_QUOTED = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


@declare("strings.quote", "(string) string", weight="linear", price=len)
def _quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


_CLAUSE = re.compile(r"%(%|(?:\.(\d+))?([sdfeboxX]))")


@declare("format", "string.(list(dyn)) string", weight="linear", metered=True)
def _format(scope: Scope, text: str, arguments: list[Any]) -> str:
    charge(scope, len(text) + len(arguments))
    rest = iter(arguments)

    def clause(found: re.Match[str]) -> str:
        if found.group(1) == "%":
            return "%"
        value = next(rest, NONE)
        if value is NONE:
            raise EvaluationError("index out of range in format arguments")
        made = _formatted(scope, found.group(3), found.group(2), value)
        charge(scope, len(made) * READ_COST)
        return made

    if re.search(r"%(?!%|(\.\d+)?[sdfeboxX])", text.replace("%%", "")):
        raise EvaluationError("could not parse formatting clause: unrecognized formatting clause")
    return _CLAUSE.sub(clause, text)


def _formatted(scope: Scope, verb: str, precision: str | None, value: Any) -> str:
    kind = kind_of(value)
    if verb == "s":
        return shown(scope, value)
    if verb in "fe" and kind in ("double", "int", "uint"):
        if precision is not None and (len(precision) > 4 or int(precision) > _PRECISION_LIMIT):
            raise EvaluationError(f"precision {precision[:20]}: want at most {_PRECISION_LIMIT}")
        return _floating(verb, int(precision or 6), float(value))
    if verb == "d" and kind in ("int", "uint", "double"):
        return to_string(value)
    if verb == "b" and kind in ("int", "uint", "bool"):
        return f"{int(value):b}"
    if verb == "o" and kind in ("int", "uint"):
        return f"{int(value):o}"
    if verb in "xX" and kind in ("int", "uint", "string", "bytes"):
        digits = f"{value:x}" if kind in ("int", "uint") else _octets(value).hex()
        return digits.upper() if verb == "X" else digits
    raise EvaluationError(f"error during formatting: verb %{verb} cannot format {kind}")


def _octets(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _floating(verb: str, precision: int, value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{precision}{verb}}"


def shown(scope: Scope, value: Any) -> str:
    """Return any value as ``%s`` prints it, charged as it goes."""
    if value is None:
        return "null"
    if isinstance(value, str):
        charge(scope, len(value) * READ_COST)
        return value
    if isinstance(value, list):
        charge(scope, _PRINT_COST * len(value))
        return f"[{', '.join(shown(scope, item) for item in value)}]"
    if isinstance(value, dict):
        charge(scope, 3 * _PRINT_COST * len(value))
        pairs = sorted((shown(scope, key), shown(scope, member)) for key, member in value.items())
        return "{" + ", ".join(f"{key}: {member}" for key, member in pairs) + "}"
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    return value.name if isinstance(value, CelType) else to_string(value)


# --- optionals


@declare("optional.of", "(T) optional(T)")
def _of(value: Any) -> Optional_:
    return Optional_(value)


@declare("optional.ofNonZeroValue", "(T) optional(T)")
def _of_non_zero(value: Any) -> Optional_:
    return NONE if zero(value) else Optional_(value)


@declare("optional.none", "() optional(T)")
def _none() -> Optional_:
    return NONE


@declare("_[_]", "(optional(list(T)), int) optional(T)", "(optional(map(K, V)), K) optional(V)")
def _optional_entry(found: Optional_, key: Any) -> Optional_:
    """What is indexed once it is an optional is one, too: ``a[?i][0]`` is as ``a[?i][?0]``."""
    if not found.present:
        return NONE
    return optional_member(found.value, key)


@declare("hasValue", "optional(T).() bool")
def _has_value(value: Optional_) -> bool:
    return value.present


@declare("value", "optional(T).() T")
def _value(value: Optional_) -> Any:
    if not value.present:
        raise EvaluationError("optional.none() dereference")
    return value.value


# --- sets: lists whose order and repetitions do not count


@declare("sets.contains", "(list(T), list(T)) bool", weight="linear", metered=True)
def _sets_contains(scope: Scope, left: list[Any], right: list[Any]) -> bool:
    return all(holds(scope, left, one) for one in right)


@declare("sets.equivalent", "(list(T), list(T)) bool", weight="linear", metered=True)
def _sets_equivalent(scope: Scope, left: list[Any], right: list[Any]) -> bool:
    return _sets_contains(scope, left, right) and _sets_contains(scope, right, left)


@declare("sets.intersects", "(list(T), list(T)) bool", weight="linear", metered=True)
def _sets_intersects(scope: Scope, left: list[Any], right: list[Any]) -> bool:
    return any(holds(scope, left, one) for one in right)
