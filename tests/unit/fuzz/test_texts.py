"""Whatever stands in a text that a client chooses, reading it takes steps in proportion.

Texts are made of a start, a fragment repeated, and an end, from the characters that each grammar
gives a meaning, and from corpora of what once took long or failed. A reader may refuse a text with
its own error and with no other. What regular expressions do inside is judged by their automata
(``test_linear_patterns``), since no step of theirs is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.api.errors import ApiError
from skerry.logic.fleet.customization.paths import parse_path
from skerry.logic.machinery import names
from skerry.logic.machinery.builtin.pod_defaults import pull_policy
from skerry.logic.machinery.crd.jsonpath import compiled as compiled_path
from skerry.logic.machinery.cron import ScheduleError, parse_schedule
from skerry.logic.machinery.decoding import DecodeError, decode_json, decode_yaml
from skerry.logic.machinery.decoding.scalars import resolved
from skerry.logic.machinery.durations import DurationError, parse_duration
from skerry.logic.machinery.jsonpath import JSONPathError
from skerry.logic.machinery.quantity import Quantity, QuantityError
from skerry.logic.machinery.schema import formats
from skerry.logic.machinery.schema.duplicates import duplicate_keys
from skerry.logic.machinery.selectors import FieldSelector, Selector, SelectorError
from skerry.server.http.target import parsed_target
from skerry.server.request.options import decode_continue
from skerry.server.response.negotiate import negotiate
from tests.kit.counting import steps


@dataclass(frozen=True)
class Reader:
    """A function of one text: what it may raise, what its grammar is made of, and its corpus."""

    read: Callable[[str], object]
    refusals: tuple[type[Exception], ...]
    alphabet: str
    corpus: tuple[str, ...] = ()


def _format(name: str) -> Callable[[str], object]:
    check = formats.check_of(name)
    assert check is not None
    return check


def _target(text: str) -> object:
    return parsed_target(text.encode("ascii", "replace"))


READERS: dict[str, Reader] = {
    "label selector": Reader(Selector.parse, (SelectorError,), "a=!,()<> innotin/.-", ("a in (",)),
    "field selector": Reader(FieldSelector.parse, (SelectorError,), "a=!,\\.m", ("a=b\\",)),
    "quantity": Reader(Quantity.parse, (QuantityError,), "019.eE+-KmkiGn", ("0", "1e9", ".")),
    "duration": Reader(parse_duration, (DurationError,), "019.hmsnuµ+-", ("0s", "1h1h")),
    "schedule": Reader(
        parse_schedule, (ScheduleError,), "0159*/-,? @everyTZ=janSUN", ("@every 0",)
    ),
    "YAML": Reader(
        lambda text: decode_yaml(text.encode()), (DecodeError,), "a1[]{}:,-?&*!|>'\"%#<\n ~",
        ("[", "{a: ", "- ", "&a [", "*a, ", "<<: *a\n", "%TAG ! x\n", "? ", "'", "|\n"),
    ),
    "JSON": Reader(
        lambda text: decode_json(text.encode()), (DecodeError,), '[]{}",:\\19eE+-truefalsn ',
        ('{"a":', "["),
    ),
    "YAML scalar": Reader(resolved, (), "0179_xob.eE+-:~yn"),
    "keys given twice": Reader(
        lambda text: duplicate_keys(text.encode()), (), '{}"a:,1[] \\', ('{"a":1,', '{"a":')
    ),
    "JSONPath of a column": Reader(
        compiled_path, (ValueError,), ".a[]*?()@='\"\\{}:,$-1", ("[", ".[?(")
    ),
    "path of a replacement": Reader(
        parse_path, (JSONPathError,), "$.a[]*:'\"\\, 1", ("[", "[ ", "['")
    ),
    "qualified name": Reader(names.qualified_name, (), "aA1-_./", ("a/", "-")),
    "subdomain": Reader(names.dns1123_subdomain, (), "a1-._", ("a-", "a.")),
    "label value": Reader(names.label_value, (), "aA1-_.", ("a-",)),
    "HTTP path": Reader(names.http_path, (), "a/-._~%!$&'()*+,;=: "),
    "image": Reader(pull_policy, (), "aA1-_./:@[]", ("a-", "a__", "a/", "[a")),
    "date-time": Reader(_format("date-time"), (), "0129-:.TtZz+", ("0",)),
    "URI": Reader(_format("uri"), (), "ah:/%2?#[]@. ", ("%", "http://[")),
    "email": Reader(_format("email"), (), "a@<>. \"()", ("a@", "<")),
    "CIDR": Reader(_format("cidr"), (), "019.:/af", ("1.", ":")),
    "IPv6": Reader(_format("ipv6"), (), "0af:.%", ("::",)),
    "MAC": Reader(_format("mac"), (), "0aF:-."),
    "base64": Reader(_format("byte"), (), "aA+/=\n-", ("=", "a\n")),
    "credit card": Reader(_format("creditcard"), (), "0149- x"),
    "duration, long form": Reader(_format("duration"), (), "0 dayshourµ\t", (" ", "0 ")),
    "Accept header": Reader(negotiate, (ApiError,), "a/*;=,q.jsonTable ", (",", ";", "a/b;")),
    "continue token": Reader(decode_continue, (ApiError,), "eyJ0-_=A", ("e30",)),
    "request target": Reader(_target, (ApiError,), "a/%2f.?#:[]@", ("%2e/", "http://[")),
}  # fmt: skip
SIZE = 48


def attempt(reader: Reader, text: str) -> Callable[[], object]:
    def run() -> object:
        try:
            return reader.read(text)
        except reader.refusals:
            return None

    return run


def assert_linear(reader: Reader, start: str, fragment: str, end: str) -> None:
    once, twice = (start + fragment * size + end for size in (SIZE, 2 * SIZE))
    first, second = attempt(reader, once), attempt(reader, twice)
    # What is compiled or remembered on first use is no part of the growth.
    first(), second()
    few, many = steps(first), steps(second)
    # What is short may be remembered, and then takes no step at all, while twice as much is too
    # long to be: twenty steps a character are few, however they come about.
    few = max(few, 20 * len(once))
    assert many <= 2.2 * few + 200, (start, fragment, end, few, many)
    assert many <= 60 * len(twice) + 4000, (start, fragment, end, many)


@pytest.mark.parametrize("name", READERS)
def test_texts_of_the_corpus_are_read_in_proportion(name: str) -> None:
    reader = READERS[name]
    for fragment in {*reader.alphabet, *reader.corpus}:
        for start, end in (("", ""), ("", "\x00"), ("a", "!"), (fragment, "x")):
            assert_linear(reader, start, fragment, end)


@pytest.mark.parametrize("name", READERS)
def test_any_text_is_read_in_proportion(name: str) -> None:
    reader = READERS[name]
    piece = st.text(alphabet=st.sampled_from(sorted({*reader.alphabet})), max_size=4)

    @settings(
        max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(piece, piece.filter(bool), piece)
    def fuzz(start: str, fragment: str, end: str) -> None:
        assert_linear(reader, start, fragment, end)

    fuzz()


@pytest.mark.parametrize("name", READERS)
def test_any_unicode_is_read_or_refused(name: str) -> None:
    reader = READERS[name]

    @settings(
        max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(st.text(max_size=20))
    def fuzz(text: str) -> None:
        attempt(reader, text)()

    fuzz()


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("text", ["9" * 5000, "٣" * 40, "²", "\x00", "a" * 100_000, "/" * 5000, ""])
def test_odd_texts_are_read_or_refused(name: str, text: str) -> None:
    attempt(READERS[name], text)()
