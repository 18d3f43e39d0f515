"""Checks of file paths, addresses and modes that several kinds share."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from skerry.api.errors import FieldError
from skerry.logic.machinery.builtin.rules import Errors

_MODE_WRONG = "must be a number between 0 and 0777 (octal), both inclusive"
NOT_POSITIVE = "must be greater than zero"
_LINK_MULTICAST = {4: ip_network("224.0.0.0/24"), 6: ip_network("ff02::/16")}


def backstep_errors(path: str, field: str) -> Errors:
    """Refuse a path with a step upwards."""
    if ".." in path.split("/"):
        return [FieldError.invalid(field, path, "must not contain '..'")]
    return []


def descending_errors(path: str, field: str) -> Errors:
    """Refuse a path that is absolute or climbs."""
    errors: Errors = []
    if path.startswith("/"):
        errors.append(FieldError.invalid(field, path, "must be a relative path"))
    return errors + backstep_errors(path, field)


def unreserved_errors(path: str, field: str) -> Errors:
    """Refuse a relative path that could collide with what the kubelet keeps in a volume."""
    errors = descending_errors(path, field)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(FieldError.invalid(field, path, "must not start with '..'"))
    return errors


def mode_errors(mode: int | None, field: str) -> Errors:
    """Refuse what is no file mode."""
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [FieldError.invalid(field, mode, _MODE_WRONG)]


def address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address *text* writes; zones and leading zeros are none."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def address_errors(text: str, field: str) -> Errors:
    """Refuse what is no IP address."""
    if address(text) is not None:
        return []
    wanted = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return [FieldError.invalid(field, text, wanted)]


def block_errors(text: str, field: str) -> Errors:
    """Refuse what is no block of addresses; bits beyond the prefix are let pass."""
    try:
        if "/" in text:
            ip_network(text, strict=False)
            return []
    except ValueError:
        pass
    wanted = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    return [FieldError.invalid(field, text, wanted)]


def special_errors(text: str, field: str) -> Errors:
    """Refuse addresses nothing outside one machine or link can be reached at."""
    known = address(text)
    if known is None:
        return [FieldError.invalid(field, text, "must be a valid IP address")]
    errors: Errors = []
    if known.is_unspecified:
        errors.append(FieldError.invalid(field, text, f"may not be unspecified ({text})"))
    if known.is_loopback:
        wanted = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        errors.append(FieldError.invalid(field, text, wanted))
    if known.is_link_local:
        wanted = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        errors.append(FieldError.invalid(field, text, wanted))
    if known in _LINK_MULTICAST[known.version]:
        wanted = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(FieldError.invalid(field, text, wanted))
    return errors
