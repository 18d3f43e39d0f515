"""Kubernetes' own CEL functions: lists, regular expressions, quantities, URLs, addresses.

Addresses follow Go's netip: no leading zeros, no zones, and IPv4 mapped into IPv6 is refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from skerry.logic.machinery import names
from skerry.logic.machinery.cel.functions import declare, parsing
from skerry.logic.machinery.cel.standard import pattern, unsigned, whole
from skerry.logic.machinery.cel.typed import READ_COST, Scope, charge
from skerry.logic.machinery.cel.values import (
    MEMBER_COST,
    NONE,
    EvaluationError,
    NamedFormat,
    Optional_,
    UInt,
    Url,
    equal,
)
from skerry.logic.machinery.quantity import Quantity, QuantityError
from skerry.logic.machinery.schema import formats

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface

# --- lists

_COMPARABLE = ("int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration")
_SUMMED = ("int", "uint", "double", "duration")
_CHUNK = 4096


def _walking(items: list[Any]) -> float:
    """Return what it costs to compare all members of a list, long texts by their length."""
    texts = bool(items) and isinstance(items[0], str | bytes)
    return len(items) / 2 + (sum(map(len, items)) * READ_COST if texts else 0)


def _chunks(items: list[Any]) -> Iterator[list[Any]]:
    """Yield a list in parts, none of which keeps other threads waiting for long."""
    return (items[at : at + _CHUNK] for at in range(0, len(items), _CHUNK))


@declare(
    "isSorted", *(f"list({kind}).() bool" for kind in _COMPARABLE), weight="linear", price=_walking
)
def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in pairwise(items))


@declare("sum", *(f"list({kind}).() {kind}" for kind in _SUMMED), weight="linear", price=_walking)
def _sum(items: list[Any]) -> Any:
    if not items:
        return 0
    total = items[0]
    try:
        for item in items[1:]:
            total = total + item
    except OverflowError as error:
        raise EvaluationError("duration out of range") from error
    if isinstance(items[0], UInt):
        return unsigned(total)
    return whole(total) if isinstance(total, int) else total


@declare(
    "min", *(f"list({kind}).() {kind}" for kind in _COMPARABLE), weight="linear", price=_walking
)
def _min(items: list[Any]) -> Any:
    if not items:
        raise EvaluationError("min called on empty list")
    return min(map(min, _chunks(items)))


@declare(
    "max", *(f"list({kind}).() {kind}" for kind in _COMPARABLE), weight="linear", price=_walking
)
def _max(items: list[Any]) -> Any:
    if not items:
        raise EvaluationError("max called on empty list")
    return max(map(max, _chunks(items)))


@declare("indexOf", "list(T).(T) int", weight="linear", metered=True)
def _index_of(scope: Scope, items: list[Any], wanted: Any) -> int:
    charge(scope, MEMBER_COST * len(items))
    return next((at for at, item in enumerate(items) if equal(scope, item, wanted)), -1)


@declare("lastIndexOf", "list(T).(T) int", weight="linear", metered=True)
def _last_index_of(scope: Scope, items: list[Any], wanted: Any) -> int:
    charge(scope, MEMBER_COST * len(items))
    return max((at for at, item in enumerate(items) if equal(scope, item, wanted)), default=-1)


# --- regular expressions

# One more match is some microseconds of bookkeeping.
_MATCH_COST = 100


@declare("find", "string.(string) string", weight="product", metered=True)
def _find(scope: Scope, text: str, expression: str) -> str:
    found = pattern(scope, text, expression).search(text)
    return found.group() if found else ""


@declare(
    "findAll",
    "string.(string) list(string)",
    "string.(string, int) list(string)",
    weight="product",
    metered=True,
)
def _find_all(scope: Scope, text: str, expression: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    for match in pattern(scope, text, expression).finditer(text):
        if len(found) == limit:
            break
        charge(scope, _MATCH_COST)
        found.append(match.group())
    return found


# --- quantities

_Q = "kubernetes.Quantity"


@declare("quantity", f"(string) {_Q}", weight="linear", price=parsing)
def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from error


@declare("isQuantity", "(string) bool", weight="linear", price=parsing)
def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


@declare("isLessThan", f"{_Q}.({_Q}) bool")
def _is_less_than(left: Quantity, right: Quantity) -> bool:
    return left < right


@declare("isGreaterThan", f"{_Q}.({_Q}) bool")
def _is_greater_than(left: Quantity, right: Quantity) -> bool:
    return right < left


@declare("compareTo", f"{_Q}.({_Q}) int")
def _compare(left: Quantity, right: Quantity) -> int:
    return (left.nanos > right.nanos) - (left.nanos < right.nanos)


@declare("sign", f"{_Q}.() int")
def _sign(value: Quantity) -> int:
    return (value.nanos > 0) - (value.nanos < 0)


def _amount(value: Quantity | int) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity.of(value)


@declare("add", f"{_Q}.({_Q}) {_Q}", f"{_Q}.(int) {_Q}")
def _add(left: Quantity, right: Quantity | int) -> Quantity:
    return left + _amount(right)


@declare("sub", f"{_Q}.({_Q}) {_Q}", f"{_Q}.(int) {_Q}")
def _sub(left: Quantity, right: Quantity | int) -> Quantity:
    return left - _amount(right)


@declare("isInteger", f"{_Q}.() bool")
def _is_integer(value: Quantity) -> bool:
    whole_units, rest = divmod(value.nanos, 10**9)
    return rest == 0 and -(1 << 63) <= whole_units < 1 << 63


@declare("asInteger", f"{_Q}.() int")
def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return value.nanos // 10**9


@declare("asApproximateFloat", f"{_Q}.() double")
def _as_float(value: Quantity) -> float:
    return value.nanos / 10**9


# --- URLs

_U = "kubernetes.URL"
# As long as a request target may be.
_URL_LENGTH = 64 * 1024


def _url_price(url: Url) -> float:
    """Return what it costs to take a URL apart, as each question about it does."""
    return parsing(url.text) + len(url.text)


def _parsed_url(text: str) -> Url | None:
    if len(text) > _URL_LENGTH:
        return None
    check = formats.check_of("uri")
    if check is None or not check(text):
        return None
    return Url(text)


@declare("url", f"(string) {_U}", weight="linear", price=parsing)
def _url(text: str) -> Url:
    made = _parsed_url(text)
    if made is None:
        message = f'URL parse error during conversion from string: parse "{text}": invalid URI'
        raise EvaluationError(f"{message} for request")
    return made


@declare("isURL", "(string) bool", weight="linear", price=parsing)
def _is_url(text: str) -> bool:
    return _parsed_url(text) is not None


@declare("getScheme", f"{_U}.() string", price=_url_price)
def _scheme(url: Url) -> str:
    return urlsplit(url.text).scheme


@declare("getHost", f"{_U}.() string", price=_url_price)
def _host(url: Url) -> str:
    return urlsplit(url.text).netloc.rpartition("@")[2]


@declare("getHostname", f"{_U}.() string", price=_url_price)
def _hostname(url: Url) -> str:
    host = _host(url)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


@declare("getPort", f"{_U}.() string", price=_url_price)
def _port(url: Url) -> str:
    found = re.search(r":(\d*)$", _host(url))
    return found.group(1) if found else ""


@declare("getEscapedPath", f"{_U}.() string", price=_url_price)
def _path(url: Url) -> str:
    return quote(urlsplit(url.text).path, safe="/%:@!$&'()*+,;=~-._")


@declare("getQuery", f"{_U}.() map(string, list(string))", price=_url_price)
def _query(url: Url) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url.text).query, keep_blank_values=True)


# --- addresses


def _address(text: str) -> _Address | None:
    if "%" in text:
        return None
    try:
        made = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = isinstance(made, ipaddress.IPv6Address) and made.ipv4_mapped is not None
    return None if mapped else made


@declare("ip", "(string) net.IP", weight="linear", price=parsing)
def _ip(text: str) -> _Address:
    made = _address(text)
    if made is None:
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string')
    return made


@declare("isIP", "(string) bool", weight="linear", price=parsing)
def _is_ip(text: str) -> bool:
    return _address(text) is not None


@declare("ip.isCanonical", "(string) bool", weight="linear", price=parsing)
def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


@declare("string", "(net.IP) string", "(net.CIDR) string", price=parsing)
def _text(value: object) -> str:
    return str(value)


@declare("family", "net.IP.() int")
def _family(address: _Address) -> int:
    return address.version


@declare("isUnspecified", "net.IP.() bool")
def _is_unspecified(address: _Address) -> bool:
    return address.is_unspecified


@declare("isLoopback", "net.IP.() bool")
def _is_loopback(address: _Address) -> bool:
    return address.is_loopback


_LINK_MULTICAST = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))


@declare("isLinkLocalMulticast", "net.IP.() bool", price=parsing)
def _is_link_local_multicast(address: _Address) -> bool:
    return any(address in network for network in _LINK_MULTICAST)


@declare("isLinkLocalUnicast", "net.IP.() bool")
def _is_link_local_unicast(address: _Address) -> bool:
    return address.is_link_local


@declare("isGlobalUnicast", "net.IP.() bool", price=parsing)
def _is_global_unicast(address: _Address) -> bool:
    # Go counts private addresses too: everything that is not special.
    special = (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )
    return not special and str(address) != "255.255.255.255"


def _interface(text: str) -> _Interface | None:
    address, slash, length = text.partition("/")
    made = _address(address)
    if made is None or not slash or not re.fullmatch(r"0|[1-9]\d{0,2}", length, re.ASCII):
        return None
    if int(length) > made.max_prefixlen:
        return None
    return ipaddress.ip_interface(text)


@declare("cidr", "(string) net.CIDR", weight="linear", price=parsing)
def _cidr(text: str) -> _Interface:
    made = _interface(text)
    if made is None:
        raise EvaluationError(f'CIDR "{text}" parse error during conversion from string')
    return made


@declare("isCIDR", "(string) bool", weight="linear", price=parsing)
def _is_cidr(text: str) -> bool:
    return _interface(text) is not None


@declare("containsIP", "net.CIDR.(net.IP) bool", "net.CIDR.(string) bool", price=parsing)
def _contains_ip(cidr: _Interface, address: _Address | str) -> bool:
    return (_ip(address) if isinstance(address, str) else address) in cidr.network


@declare("containsCIDR", "net.CIDR.(net.CIDR) bool", "net.CIDR.(string) bool", price=parsing)
def _contains_cidr(cidr: _Interface, other: _Interface | str) -> bool:
    inner = (_cidr(other) if isinstance(other, str) else other).network
    outer = cidr.network
    return (
        inner.version == outer.version
        and inner.prefixlen >= outer.prefixlen
        and inner.network_address in outer
    )


@declare("ip", "net.CIDR.() net.IP")
def _cidr_ip(cidr: _Interface) -> _Address:
    return cidr.ip


@declare("masked", "net.CIDR.() net.CIDR", price=parsing)
def _masked(cidr: _Interface) -> _Interface:
    return ipaddress.ip_interface(str(cidr.network))


@declare("prefixLength", "net.CIDR.() int")
def _prefix_length(cidr: _Interface) -> int:
    return cidr.network.prefixlen


# --- named formats

_NF = "kubernetes.NamedFormat"


def _format_errors(name: str) -> Any:
    """Return the check that says what is wrong, by the format's name."""
    check = {
        "dns1123Label": names.dns1123_label,
        "dns1123Subdomain": names.dns1123_subdomain,
        "dns1035Label": names.dns1035_label,
        "qualifiedName": names.qualified_name,
        "labelValue": names.label_value,
    }.get(name)
    if check is not None:
        return check
    by_format = {
        "uri": "uri",
        "uuid": "uuid",
        "byte": "byte",
        "date": "date",
        "datetime": "datetime",
    }
    test = formats.check_of(by_format[name])
    return lambda text: [] if test is None or test(text) else [f"invalid {name}"]


_FORMATS = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uri",
    "uuid", "byte", "date", "datetime",
)  # fmt: skip


def _declare_formats() -> None:
    """Declare ``format.dns1123Label()`` and its kin."""
    for name in _FORMATS:
        declare(f"format.{name}", f"() {_NF}")(lambda _name=name: NamedFormat(_name))


_declare_formats()


@declare("format.named", f"(string) optional({_NF})")
def _named(name: str) -> Optional_:
    return Optional_(NamedFormat(name)) if name in _FORMATS else NONE


@declare(
    "validate",
    f"{_NF}.(string) optional(list(string))",
    price=lambda _, text: parsing(text),
)
def _validate(named: NamedFormat, text: str) -> Optional_:
    wrong = list(_format_errors(named.name)(text))
    return Optional_(wrong) if wrong else NONE
