"""String formats, and Go's regular expressions in Python."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.logic.machinery.schema import formats
from skerry.logic.machinery.schema.patterns import PatternError, compiled


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2024-02-29T12:00:00.5Z", "2023-02-29T12:00:00Z"),
        ("datetime", "2024-01-01T00:00:00+02:00", "2024-01-01 00:00:00"),
        ("date", "2024-02-29", "2024-2-29"),
        ("duration", "1h30m", "1 fortnight"),
        ("duration", "3 days", "-"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("cidr", "2001:db8::/32", "10.0.0.0"),
        ("mac", "00:1B:44:11:3A:B7", "00:1B:44:11:3A"),
        ("uuid", "8C0F6A52-6A44-4C0E-9D0A-5CF9F1A0A6F1", "8C0F6A52"),
        ("uuid3", "8c0f6a52-6a44-3c0e-9d0a-5cf9f1a0a6f1", "8c0f6a52-6a44-4c0e-9d0a-5cf9f1a0a6f1"),
        ("uuid4", "8c0f6a52-6a44-4c0e-9d0a-5cf9f1a0a6f1", "8c0f6a52-6a44-4c0e-1d0a-5cf9f1a0a6f1"),
        ("uuid5", "8c0f6a52-6a44-5c0e-9d0a-5cf9f1a0a6f1", "8c0f6a52-6a44-4c0e-9d0a-5cf9f1a0a6f1"),
        ("email", "a@example.com", "a.example.com"),
        ("hostname", "a.example.com", "-a.example.com"),
        ("uri", "https://example.com/a?b", "example.com"),
        ("uri", "/path", "https://a b"),
        ("byte", "aGVsbG8=", "a"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("isbn10", "0321751043", "0321751044"),
        ("isbn13", "9780321751041", "0321751043"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("ssn", "123-45-6789", "123-456-789"),
        ("hexcolor", "#FFaa00", "#FFaa0"),
        ("rgbcolor", "rgb(1, 20, 255)", "rgb(1, 20, 256)"),
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77"),
    ],
)
def test_each_format_separates_right_from_wrong(name: str, good: str, bad: str) -> None:
    check = formats.check_of(name)
    assert check is not None
    assert check(good)
    assert not check(bad)


def test_passwords_may_be_anything_and_unknown_formats_check_nothing() -> None:
    password = formats.check_of("password")
    assert password is not None
    assert password("")
    assert formats.check_of("k8s-quantity") is None


@pytest.mark.parametrize(
    ("pattern", "match", "miss"),
    [
        (r"^a$", "a", "a\n"),
        (r"^\d+$", "12", "\u0661"),
        (r"^[\d.]+$", "1.2", "1,2"),
        (r"^[^\W_]+$", "ab1", "a_b"),
        (r"\Aa\z", "a", "ba"),
        (r"^\pL+$", "aé", "a1"),
        (r"^[\p{Lu}\p{Nd}]+$", "A1", "a"),
        (r"^\p{Greek}+$", "αβ", "ab"),
        (r"^\P{L}$", "1", "a"),
        (r"^[[:alpha:]_]+$", "a_", "1"),
        (r"^[[:^digit:]]$", "a", "1"),
        (r"^(?P<n>a)(?<m>b)$", "ab", "ba"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\x{1F600}$", "\U0001f600", "x"),
        (r"(?i)^abc$", "ABC", "abd"),
        (r"^a(?i)b$", "aB", "AB"),
        (r"^(?i:a)b$", "Ab", "AB"),
        (r"^a{2}$", "aa", "a"),
        (r"^a{$", "a{", "a"),
        (r"^[a[]$", "[", "b"),
        (r"^[]a]$", "]", "b"),
        (r"^a+?b$", "aab", "b"),
        (r"(?m)^b$", "a\nb", "ab"),
        (r"^\s$", "\t", "\v"),
    ],
)
def test_go_patterns_mean_in_python_what_they_mean_in_go(
    pattern: str, match: str, miss: str
) -> None:
    assert compiled(pattern).search(match)
    assert not compiled(pattern).search(miss)


@pytest.mark.parametrize(
    "pattern",
    [r"(?=a)", r"(?!a)", r"(?<=a)", r"(a)\1", r"a**", r"a++", "[a", "(a", r"a{1001}", "\\", r"\y",
     r"(?P=n)", r"[[:nope:]]", r"\p{Nope}", r"\x{110000}", r"(?>a)"],
)  # fmt: skip
def test_what_go_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="error parsing regexp"):
        compiled(pattern)


def test_no_pattern_takes_more_time_than_its_text_is_long() -> None:
    # A backtracking engine would need longer than anybody could wait.
    assert compiled(r"^(a+)+$").search("a" * 50_000 + "!") is None


def test_a_refusal_is_worded_as_go_words_it() -> None:
    with pytest.raises(PatternError, match=r"error parsing regexp: missing closing \]: `\[a`"):
        compiled("[a")


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab.*+?[](){}^$|\\-0,:dwspQE<>=!Pi", max_size=12))
def test_any_text_either_compiles_or_is_refused(pattern: str) -> None:
    try:
        found = compiled(pattern)
    except PatternError as error:
        assert str(error).startswith("error parsing regexp: ")  # noqa: PT017 - either way is fine
        return
    assert found.search("ab") is None or found.search("ab") is not None
