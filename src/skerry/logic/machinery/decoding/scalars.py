"""What an untagged YAML scalar means, as sigs.k8s.io/yaml reads it.

That is YAML 1.1 as Go's yaml.v2 has it: ``yes``, ``on`` and ``y`` are booleans, ``017`` and
``0o17`` are octal, ``1_000`` is a number; dates and sexagesimal numbers are text. Numbers with a
fraction of zero become integers, because they pass through JSON there (``1.0`` is written ``1``).
"""

from __future__ import annotations

import re
from typing import Final

Scalar = str | int | float | bool | None

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE"), True),
    **dict.fromkeys(("on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE"), False),
    **dict.fromkeys(("off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
# JSON has no way to write them.
UNREPRESENTABLE: Final = frozenset(
    {
        *(".nan", ".NaN", ".NAN"),
        *(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")),
    }
)
_NUMERIC_START: Final = frozenset("+-.0123456789")
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_BASES: Final = (16, 2, 8, 10)
# A double has at most 767 significant digits; converting decimal digits to an integer takes time
# quadratic in their number. Longer ones are text.
_MAX_NUMBER_LENGTH: Final = 400
_MIN_INTEGER, _MAX_INTEGER = -(1 << 63), (1 << 64) - 1


def resolved(text: str) -> Scalar:
    """Return the value of the plain scalar *text*."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START or len(text) > _MAX_NUMBER_LENGTH:
        return text
    plain = text.replace("_", "")
    found = _INTEGER.fullmatch(plain)
    if found is not None:
        sign, *digits = found.groups()
        number = next(
            int(part, base) for part, base in zip(digits, _BASES, strict=True) if part is not None
        )
        number = -number if sign == "-" else number
        if _MIN_INTEGER <= number <= _MAX_INTEGER:
            return number
    if _FLOAT.fullmatch(plain) is None:
        return text
    value = float(plain)
    if value in (float("inf"), float("-inf")):
        return text
    return as_json_number(value)


def as_json_number(value: float) -> int | float:
    """Return *value* as it reads when Go has written it to JSON: whole numbers are integers."""
    if value.is_integer() and _MIN_INTEGER <= value <= _MAX_INTEGER:
        return int(value)
    return value


def as_key(value: Scalar) -> str | None:
    """Return a scalar as the key of a JSON object; None where it cannot be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return None if value is None else repr(value)
