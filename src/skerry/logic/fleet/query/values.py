"""Values of expressions as results hold them: scalars only, numbers exact, texts bounded.

Nothing is coerced. A number written as a string, NaN, infinities, lists and maps are no values of
a column: the row has an error there, which is counted. An edge may report what it likes, so what is
shown of a text is bounded too; a hash keeps apart what is cut alike.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Final

Number = int | float
Scalar = None | bool | int | float | str

MAX_TEXT: Final = 256
_HASH_LENGTH = 12
# Beyond this a JSON number is no longer exact for most who read it.
_MAX_JSON_INTEGER: Final = 2**53
# An edge's integers are as long as its object has room for; comparing and adding takes as long.
_MAX_INTEGER_BITS: Final = 4096


class ValueRefusal(Exception):
    """The value of an expression cannot stand in a column; the text says why."""


def number(value: Any) -> Number:
    """Return a value that can be added and compared, in the one form that equal numbers have."""
    if type(value) is int:
        if value.bit_length() > _MAX_INTEGER_BITS:
            raise ValueRefusal(f"an integer of {value.bit_length()} bits: want {_MAX_INTEGER_BITS}")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueRefusal(f"want a number, got {_kind(value)}")
    if isinstance(value, int):
        return number(int(value))
    if not math.isfinite(value):
        raise ValueRefusal(f"want a finite number, got {value}")
    # 2.0 and 2 are one number: which of them came first must not decide what is shown.
    return int(value) if value.is_integer() and abs(value) <= _MAX_JSON_INTEGER else value


def scalar(value: Any) -> Scalar:
    """Return a value that can be a group's key or be shown, texts cut to what is shown."""
    if isinstance(value, str):
        return cut(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return number(value)
    raise ValueRefusal(f"want a string, number or bool, got {_kind(value)}")


def cut(text: str) -> str:
    """Return *text*, or the beginning of a long one with a hash of the whole."""
    if len(text) <= MAX_TEXT:
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_LENGTH // 2)
    return f"{text[: MAX_TEXT - _HASH_LENGTH - 1]}~{digest.hexdigest()}"


def ordered(value: Any) -> tuple[int, Any]:
    """Return what scalars of any type are ordered by: null, booleans, numbers, texts, the rest."""
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float):
        return 2, value
    return (3, value) if isinstance(value, str) else (4, 0)


def shown(value: Any) -> Any:
    """Return a value as JSON has it: an integer beyond 53 bits is a string."""
    if type(value) is int and abs(value) > _MAX_JSON_INTEGER:
        return str(value)
    return value


def type_name(value: Any) -> str:
    """Return the name of a shown value's type, as ``columns`` has it."""
    if isinstance(value, bool):
        return "bool"
    for kind, name in ((int, "int"), (float, "double"), (str, "string"), (list, "list")):
        if isinstance(value, kind):
            return name
    return "dyn"


def _kind(value: Any) -> str:
    names = {"NoneType": "null", "str": "string", "dict": "map"}
    name = type(value).__name__
    return names.get(name, name.strip("_").lower())
