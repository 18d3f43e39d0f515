"""Kubernetes' fixed-point numbers: ``500m``, ``1.5Gi``, ``12e6``.

A quantity is a whole number of billionths, so arithmetic is exact and nothing is ever a float.
Finer parts are rounded away from zero: who asks for a little gets a little. A quantity remembers
which family of suffixes it was written in and is printed in that family again, in canonical form:
no fraction, the largest suffix that loses nothing. Text that Kubernetes already takes for
canonical is printed as it came, as the API server does.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import Final

from skerry.kit.caching import SHORT

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

_NANO = 10**9
# Binary quantities stop at the largest signed 64-bit integer.
_MAX_BINARY = (2**63 - 1) * _NANO
# Kubernetes computes lazily with absurd exponents; we would have to write the digits. Nobody
# counts anything in the world beyond this.
_MAX_EXPONENT = 400

# A suffix begins with what no number holds, so that there is one way to read any text.
_FORM = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?((?:[eEinumkKMGTP]+[-+]?|[-+])[0-9]*)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)").fullmatch
# The digits a signed 64-bit integer surely holds: beyond them Kubernetes leaves its fast path,
# which is the one that remembers the text.
_FAST_DIGITS = 18


class QuantityError(ValueError):
    """Text that is no quantity; the message is the one the API server gives."""


_WRONG_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_SUFFIX = "unable to parse quantity's suffix"


@total_ordering
class Quantity:
    """An exact amount; compared by value alone, whatever it was written in."""

    __slots__ = ("_text", "format", "nanos")

    def __init__(self, nanos: int, number_format: str = DECIMAL_SI, text: str = "") -> None:
        self.nanos = nanos
        self.format = number_format
        self._text = text

    @classmethod
    def of(cls, value: int, number_format: str = DECIMAL_SI) -> Quantity:
        """Return a whole number of units."""
        return cls(value * _NANO, number_format)

    @classmethod
    def of_milli(cls, value: int, number_format: str = DECIMAL_SI) -> Quantity:
        """Return a whole number of thousandths."""
        return cls(value * 10**6, number_format)

    @classmethod
    def parse(cls, text: str | float) -> Quantity:
        """Read what a client wrote: text, or a JSON number."""
        if not isinstance(text, str):
            if isinstance(text, bool):
                raise QuantityError(_WRONG_FORM)
            text = repr(text)
        if len(text) > SHORT:
            raise QuantityError("unable to parse numeric part of quantity")
        return _read(text)

    def rounded_up(self, exponent: int) -> Quantity:
        """Return the next amount away from zero that is a multiple of ten to the *exponent*."""
        unit = int(10 ** (exponent + 9))
        if self.nanos % unit == 0:
            return self
        return Quantity(_away_from_zero(self.nanos, unit) * unit, self.format)

    def value(self) -> int:
        """Return whole units, rounded away from zero."""
        return _away_from_zero(self.nanos, _NANO)

    def milli_value(self) -> int:
        """Return thousandths, rounded away from zero."""
        return _away_from_zero(self.nanos, 10**6)

    def __add__(self, other: Quantity) -> Quantity:
        # A zero takes the other's suffixes: sums begin with a plain zero.
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __str__(self) -> str:
        if not self._text:
            self._text = _canonical(self.nanos, self.format)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({self})"


def _away_from_zero(number: int, unit: int) -> int:
    return -(-number // unit) if number > 0 else number // unit


# A quantity never changes, and the same few stand in very many pods.
@lru_cache(maxsize=4096)
def _read(text: str) -> Quantity:
    found = _FORM.fullmatch(text)
    if found is None or not text:
        raise QuantityError(_WRONG_FORM)
    return _parsed(text, found)


def _parsed(text: str, found: re.Match[str]) -> Quantity:
    sign, whole, dot, fraction, suffix = found.groups(default="")
    whole = whole.lstrip("0")
    number_format, exponent = _interpreted(suffix)
    digits = (whole or "0") + fraction
    mantissa = int(digits)
    if number_format == BINARY_SI:
        nanos = _divided(mantissa << exponent, 9 - len(fraction))
        nanos = min(nanos, _MAX_BINARY)
        kept = not dot and bool(mantissa & 7) and _fast_binary(whole, exponent)
        if 0 < nanos < _NANO:
            number_format = DECIMAL_SI
    else:
        scale = exponent - len(fraction)
        nanos = _divided(mantissa, scale + 9)
        kept = _kept_decimal(digits, scale)
    return Quantity(-nanos if sign == "-" else nanos, number_format, text if kept else "")


def _fast_binary(whole: str, exponent: int) -> bool:
    return 15 - len(whole) - exponent * 3 // 10 - 1 >= 0


def _kept_decimal(digits: str, scale: int) -> bool:
    """Tell whether Kubernetes prints such a number as it was written."""
    return (
        scale % 3 == 0
        and scale >= -9
        and len(digits) <= _FAST_DIGITS
        and not digits.endswith("000")
        and digits[0] != "0"
    )


def _divided(number: int, scale: int) -> int:
    """Return *number* times ten to the *scale*, rounded up."""
    return int(number * 10**scale) if scale >= 0 else -(-number // 10**-scale)


def _interpreted(suffix: str) -> tuple[str, int]:
    """Return the family a suffix belongs to, and its exponent (of two or of ten)."""
    exponent = _DECIMAL.get(suffix)
    if exponent is not None:
        return DECIMAL_SI, exponent
    exponent = _BINARY.get(suffix)
    if exponent is not None:
        return BINARY_SI, exponent
    written = _EXPONENT(suffix)
    if written is None or len(written[1]) > 6:
        raise QuantityError(_WRONG_SUFFIX)
    exponent = int(written[1])
    if abs(exponent) > _MAX_EXPONENT:
        raise QuantityError(_WRONG_SUFFIX)
    return DECIMAL_EXPONENT, exponent


def _canonical(nanos: int, number_format: str) -> str:
    if nanos == 0:
        return "0"
    # Small or fractional amounts would lose something in powers of 1024.
    if number_format == BINARY_SI and abs(nanos) >= 1024 * _NANO and nanos % _NANO == 0:
        return _canonical_binary(nanos // _NANO)
    return _canonical_decimal(nanos, number_format)


def _canonical_binary(number: int) -> str:
    power = 0
    while number % 1024 == 0 and power < len(_BINARY_SUFFIX) - 1:
        number //= 1024
        power += 1
    return f"{number}{_BINARY_SUFFIX[power]}"


def _canonical_decimal(nanos: int, number_format: str) -> str:
    exponent = -9
    max_exponent = _MAX_EXPONENT if number_format == DECIMAL_EXPONENT else 18
    while nanos % 1000 == 0 and exponent < max_exponent:
        nanos //= 1000
        exponent += 3
    if number_format == DECIMAL_EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"
