"""Quantities: exact numbers, printed as Kubernetes prints them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.quantity import BINARY_SI, DECIMAL_SI, Quantity, QuantityError

SUFFIXES = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "e3": Fraction(1000),
    "E-3": Fraction(1, 1000),
}  # fmt: skip
TEXTS = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**6),
    st.sampled_from(["", ".", ".5", ".25", ".125", ".000"]),
    st.sampled_from(sorted(SUFFIXES)),
)


def exact(text: str) -> Fraction:
    suffix = next(s for s in sorted(SUFFIXES, key=len, reverse=True) if text.endswith(s))
    return Fraction(text.removesuffix(suffix).rstrip(".")) * SUFFIXES[suffix]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0"), ("0Ki", "0"), ("-0", "0"), ("1", "1"), ("100m", "100m"), ("0.5", "500m"),
        ("1.5", "1500m"), ("1000m", "1"), ("1.5Gi", "1536Mi"), ("1024Mi", "1Gi"),
        ("100Mi", "100Mi"), ("1025Ki", "1025Ki"), ("1000", "1k"), ("12e6", "12e6"),
        ("1000000", "1M"), ("0.1Ki", "102400m"), ("512Ki", "512Ki"), ("1Ei", "1Ei"),
        ("0.5Mi", "512Ki"), ("1e3", "1e3"), ("10e3", "10e3"), ("1000e0", "1e3"), ("-5m", "-5m"),
        ("0.0000000001", "1n"), ("9Ei", "9223372036854775807"), ("1.500", "1.500"),
        ("3.Gi", "3Gi"), (".5", "500m"), ("1E", "1E"), ("2000E", "2000E"), ("0.3n", "1n"),
        ("1023Ki", "1023Ki"), ("0.001Ki", "1024m"), ("500M", "500M"),
    ],
)  # fmt: skip
def test_quantities_are_printed_as_kubernetes_prints_them(text: str, printed: str) -> None:
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize("text", ["", "abc", "1x", "1.2.3", " 1", "1 ", "1Gi2k"])
def test_text_of_the_wrong_form_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["1KK", "1i", "1mi", "1e", "1e-", "1Kib".removesuffix("b") + "3",
                                  "1e9999999", "1e1000", "1ki", "--1"])  # fmt: skip
def test_unknown_suffixes_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        Quantity.parse(text)


def test_absurdly_long_numbers_are_refused() -> None:
    with pytest.raises(QuantityError, match="unable to parse numeric part of quantity"):
        Quantity.parse("1" * 500)


def test_json_numbers_are_quantities_and_booleans_are_not() -> None:
    assert str(Quantity.parse(2)) == "2"
    assert str(Quantity.parse(0.5)) == "500m"
    with pytest.raises(QuantityError):
        Quantity.parse(True)


@given(TEXTS)
def test_parsing_is_exact_to_the_billionth(text: str) -> None:
    difference = Quantity.parse(text).nanos - exact(text) * 10**9
    assert abs(difference) < 1
    assert difference == 0 or (difference > 0) == (exact(text) > 0)


def test_a_binary_number_without_a_suffix_is_decimal_when_read_again() -> None:
    assert str(Quantity(3_104_000 * 10**9, Quantity.parse("1Ki").format)) == "3104000"
    assert str(Quantity(3_104_000 * 10**9, Quantity.parse("1k").format)) == "3104k"


@given(TEXTS)
def test_the_canonical_form_loses_nothing_and_is_stable(text: str) -> None:
    quantity = Quantity.parse(text)
    fresh = Quantity(quantity.nanos, quantity.format)
    again = Quantity.parse(str(fresh))
    assert again == quantity
    # A whole number that no binary suffix divides is written without one, and so read as decimal.
    if again.format == fresh.format:
        assert str(again) == str(fresh)
    assert "." not in str(fresh)


@given(TEXTS, TEXTS)
def test_arithmetic_and_order_are_those_of_the_numbers(left: str, right: str) -> None:
    one, two = Quantity.parse(left), Quantity.parse(right)
    assert (one + two).nanos == one.nanos + two.nanos
    assert one + two - two == one
    assert (one < two) == (one.nanos < two.nanos)
    assert (one == two) == (hash(one) == hash(two)) or one != two
    assert -one + one == Quantity(0)


def test_a_sum_begun_with_zero_takes_the_suffixes_of_what_is_added() -> None:
    assert str(Quantity(0) + Quantity.parse("1Gi") + Quantity.parse("1Gi")) == "2Gi"
    assert str(Quantity.parse("1Gi") - Quantity.parse("512Mi")) == "512Mi"
    assert str(Quantity.parse("100m") * 3) == "300m"


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("1500m", 2, 1500),
        ("1", 1, 1000),
        ("1n", 1, 1),
        ("-1500m", -2, -1500),
        ("1Ki", 1024, 1024000),
    ],
)
def test_whole_values_round_away_from_zero(text: str, value: int, milli: int) -> None:
    assert Quantity.parse(text).value() == value
    assert Quantity.parse(text).milli_value() == milli


def test_rounding_up_to_thousandths() -> None:
    assert str(Quantity.parse("1u").rounded_up(-3)) == "1m"
    assert str(Quantity.parse("1.500").rounded_up(-3)) == "1.500"


def test_quantities_are_made_from_integers_and_are_true_unless_zero() -> None:
    assert str(Quantity.of(2048, BINARY_SI)) == "2Ki"
    assert str(Quantity.of_milli(250)) == "250m"
    assert Quantity.of(1)
    assert not Quantity.of(0)
    assert Quantity.of(1).format == DECIMAL_SI
    assert Quantity.of(1) != "1"
    assert repr(Quantity.of(1)) == "Quantity(1)"
