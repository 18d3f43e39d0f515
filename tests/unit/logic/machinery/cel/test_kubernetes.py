"""Kubernetes' own functions of CEL: lists, patterns, quantities, URLs, addresses, formats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.cel.typed import CostExceeded
from tests.kit.machinery.expressions import complaint, computed


@given(st.lists(st.integers(-100, 100), min_size=1))
def test_lists_are_summed_compared_and_searched_as_python_does(items: list[int]) -> None:
    assert computed("a.sum()", a=items) == sum(items)
    assert computed("a.min()", a=items) == min(items)
    assert computed("a.max()", a=items) == max(items)
    assert computed("a.isSorted()", a=items) == (items == sorted(items))
    assert computed("a.indexOf(b)", a=items, b=items[-1]) == items.index(items[-1])
    last = len(items) - 1 - items[::-1].index(items[0])
    assert computed("a.lastIndexOf(b)", a=items, b=items[0]) == last


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2].indexOf(3)", -1),
        ("['b', 'a'].isSorted()", False),
        ("[].sum()", 0),
        ("[1.5, 2.0].sum()", 3.5),
        ("[duration('1s'), duration('2s')].sum() == duration('3s')", True),
        ("[1u, 2u].sum() == 3u", True),
        ("[18446744073709551615u].sum() == 18446744073709551615u", True),
        ("'abc123'.find('[0-9]+')", "123"),
        ("'abc'.find('[0-9]+')", ""),
        ("'1 22 333'.findAll('[0-9]+')", ["1", "22", "333"]),
        ("'1 22 333'.findAll('[0-9]+', 2)", ["1", "22"]),
    ],
)
def test_lists_and_patterns(text: str, value: object) -> None:
    assert computed(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[].min()", "min called on empty list"),
        ("[].max()", "max called on empty list"),
        ("[9223372036854775807, 1].sum()", "integer overflow"),
        ("[18446744073709551615u, 1u].sum()", "unsigned integer overflow"),
        ("[duration('20000000000h'), duration('20000000000h')].sum()", "duration out of range"),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        ("ip('127.0.0.01')", 'IP Address "127.0.0.01" parse error during conversion from string'),
        ("cidr('10.0.0.0/33')", 'CIDR "10.0.0.0/33" parse error during conversion from string'),
    ],
)
def test_what_has_no_value_says_why(text: str, why: str) -> None:
    assert complaint(text) == why


def test_matches_are_paid_for_one_by_one() -> None:
    with pytest.raises(CostExceeded):
        computed("a.findAll('x')", limit=5000, a="x" * 1000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("quantity('1Ki').isGreaterThan(quantity('1k'))", True),
        ("quantity('1').isLessThan(quantity('1000m'))", False),
        ("quantity('1').compareTo(quantity('1000m'))", 0),
        ("quantity('1').compareTo(quantity('2'))", -1),
        ("quantity('-1').sign()", -1),
        ("quantity('0').sign()", 0),
        ("quantity('1').add(quantity('500m')) == quantity('1500m')", True),
        ("quantity('1').sub(2) == quantity('-1')", True),
        ("quantity('2k').asInteger()", 2000),
        ("quantity('1500m').isInteger()", False),
        ("quantity('1500m').asApproximateFloat()", 1.5),
        ("isQuantity('1Gi') && !isQuantity('lots')", True),
    ],
)
def test_quantities(text: str, value: object) -> None:
    assert computed(text) == value


@pytest.mark.parametrize(
    ("getter", "value"),
    [
        ("getScheme()", "https"),
        ("getHost()", "[::1]:8080"),
        ("getHostname()", "::1"),
        ("getPort()", "8080"),
        ("getEscapedPath()", "/a%20b/ü".replace("ü", "%C3%BC")),
        ("getQuery()", {"k": ["1", "2"], "e": [""]}),
    ],
)
def test_parts_of_a_url(getter: str, value: object) -> None:
    url = "https://user@[::1]:8080/a%20b/%C3%BC?k=1&k=2&e="
    assert computed(f"url(a).{getter}", a=url) == value


def test_what_is_a_url() -> None:
    assert computed("isURL('https://a.example/x') && url('http://a').getPort() == ''") is True
    assert computed("isURL(a)", a="/" + "x" * 70_000) is False
    assert complaint("url('not a url')").startswith("URL parse error during conversion")


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("10.0.0.1", True),
        ("fd00::1", True),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("10.0.0.01", False),
        ("10.0.0", False),
    ],
)
def test_addresses_are_those_of_go(text: str, good: bool) -> None:
    assert computed("isIP(a)", a=text) is good


@pytest.mark.parametrize(
    "text",
    [
        "ip('10.0.0.1').family() == 4 && ip('::1').family() == 6",
        "ip.isCanonical('fd00::1') && !ip.isCanonical('FD00::1')",
        "ip('0.0.0.0').isUnspecified() && ip('127.0.0.1').isLoopback()",
        "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
        "ip('169.254.0.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
        "ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
        "string(ip('FD00::1')) == 'fd00::1'",
        "cidr('10.0.0.1/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP('11.0.0.1')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "!cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        "!cidr('10.0.0.0/8').containsCIDR('fd00::/8')",
        "string(cidr('10.0.0.1/8').masked()) == '10.0.0.0/8'",
        "cidr('10.0.0.1/8').ip() == ip('10.0.0.1') && cidr('10.0.0.1/8').prefixLength() == 8",
        "isCIDR('fd00::/128') && !isCIDR('fd00::/129') && !isCIDR('10.0.0.0/08')",
    ],
)
def test_addresses_and_blocks(text: str) -> None:
    assert computed(text) is True


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("dns1123Label", "a-b", "a.b"),
        ("dns1123Subdomain", "a.b", "a_b"),
        ("dns1035Label", "a1", "1a"),
        ("qualifiedName", "a.com/b", "a b"),
        ("labelValue", "", "-"),
        ("uri", "https://a", "no uri"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("byte", "YWJj", "!"),
        ("date", "2024-01-31", "2024-02-31"),
        ("datetime", "2024-01-31T00:00:00Z", "yesterday"),
    ],
)
def test_formats_by_name(name: str, good: str, bad: str) -> None:
    assert computed(f"format.{name}().validate(a).hasValue()", a=good) is False
    assert computed(f"format.{name}().validate(a).hasValue()", a=bad) is True
    assert computed("format.named(a).hasValue()", a=name) is True
    assert computed("format.named(a).hasValue()", a="mine") is False
