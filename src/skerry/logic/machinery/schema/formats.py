"""The string formats apiextensions checks; every other format is a remark and checks nothing.

Dashes in a format's name do not count (``date-time`` is ``datetime``), as in Kubernetes.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date

from skerry.kit.caching import short_text_cache
from skerry.logic.machinery.durations import DurationError, parse_duration
from skerry.logic.machinery.urls import split_url

_UUID = r"^[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}$"
_ANY4, _VARIANT = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"
_DATE_TIME = re.compile(
    r"^(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?"
    r"([Zz]|[+-]([01]\d|2[0-3]):?[0-5]\d)$"
)
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}$")
# Longer than any number and unit.
_MAX_LONG_DURATION = 64
_LONG_DURATION = re.compile(
    r"^\s*\d+\s*(d|w|ns|us|µs|ms|s|m|h|nanos?|nanoseconds?|micros?|microseconds?|millis?"
    r"|milliseconds?|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|wks?|weeks?)\s*$",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$")
_MAC = re.compile(
    r"^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){7}"
    r"|[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){19}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}"
    r"|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){3}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){9})$"
)
_CARD = re.compile(
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$"
)
_EMAIL = re.compile(r"^(?:[^<>]*<)?[^\s@<>()\[\],;:\\\"]+@[^\s@<>()\[\],;:\\\"]+>?$")
_RGB = re.compile(
    r"^rgb\(\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
    r"\s*,\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$"
)
_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:")


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.match(text) is not None


@short_text_cache(1024)
def is_date_time(text: str) -> bool:
    """RFC 3339; the day must exist."""
    found = _DATE_TIME.match(text)
    return found is not None and _exists(found.group(1), found.group(2), found.group(3))


def is_date(text: str) -> bool:
    """RFC 3339 full-date; the day must exist."""
    return _DATE.match(text) is not None and _exists(*text.split("-"))


def _exists(year: str, month: str, day: str) -> bool:
    try:
        date(max(int(year), 1), int(month), int(day))
    except ValueError:
        return False
    return True


def is_duration(text: str) -> bool:
    """Tell whether *text* is Go's ``1h30m`` or the long form ``3 days``."""
    try:
        parse_duration(text)
    except DurationError:
        return len(text) <= _MAX_LONG_DURATION and _LONG_DURATION.match(text) is not None
    return True


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    # Go's ParseIP knows no zones.
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not re.fullmatch(r"0|[1-9][0-9]{0,2}", length, re.ASCII):
        return False
    return int(length) <= (32 if _is_ipv4(address) else 128 if _is_ipv6(address) else -1)


def _is_hostname(text: str) -> bool:
    return 0 < len(text) <= 255 and all(_LABEL.match(part) for part in text.split("."))


def _is_uri(text: str) -> bool:
    """As Go's ParseRequestURI: an absolute URI or an absolute path."""
    if not text or any(char <= " " or char == "\x7f" for char in text):
        return False
    if not text.startswith("/") and not _SCHEME.match(text):
        return False
    try:
        parts = split_url(text)
        _ = parts.port
    except ValueError:
        return False
    return re.search(r"%(?![0-9A-Fa-f]{2})", parts.path) is None


def is_base64(text: str) -> bool:
    """Standard alphabet, padded; line breaks are skipped, as Go skips them."""
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if char == "X" else int(char) for char in digits]
    return sum((10 - place) * value for place, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(char) * (3 if place % 2 else 1) for place, char in enumerate(digits)) % 10 == 0


def _is_isbn(text: str) -> bool:
    return _is_isbn10(text) or _is_isbn13(text)


def _is_credit_card(text: str) -> bool:
    """A known issuer's number with a right check digit; anything but digits is skipped."""
    digits = re.sub(r"[^0-9]", "", text)
    if not _CARD.match(digits):
        return False
    doubled = [int(char) * (2 if place % 2 else 1) for place, char in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _anything(_: str) -> bool:
    return True


_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"^[0-9a-fA-F]{24}$"),
    "byte": is_base64,
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "email": lambda text: _EMAIL.match(text) is not None,
    "hexcolor": _matches(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": _is_isbn,
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "mac": lambda text: _MAC.match(text) is not None,
    "password": _anything,
    "rgbcolor": lambda text: _RGB.match(text) is not None,
    "ssn": _matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
    "uri": _is_uri,
    "uuid": _matches(_UUID % (_ANY4, _ANY4), re.IGNORECASE),
    "uuid3": _matches(_UUID % ("3[0-9a-f]{3}", _ANY4), re.IGNORECASE),
    "uuid4": _matches(_UUID % ("4[0-9a-f]{3}", _VARIANT), re.IGNORECASE),
    "uuid5": _matches(_UUID % ("5[0-9a-f]{3}", _VARIANT), re.IGNORECASE),
}


def check_of(name: str) -> Callable[[str], bool] | None:
    """Return the test for the format *name*, None where none is made."""
    return _CHECKS.get(name.replace("-", ""))
