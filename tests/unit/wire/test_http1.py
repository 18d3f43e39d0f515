"""Heads: nothing in one can begin another line, and what is written is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.wire.http1 import (
    FieldNames,
    one_line,
    parsed_request,
    phrase,
    request_head,
    response_lines,
)

NAMES = st.text(alphabet="abcXYZ-", min_size=1, max_size=12)


def test_a_request_head_is_its_line_its_fields_and_an_empty_line() -> None:
    head = request_head("GET", "/a?b=1", {"accept": "*/*"}, ["host: h:1"])
    assert head == b"GET /a?b=1 HTTP/1.1\r\nhost: h:1\r\naccept: */*\r\n\r\n"


@pytest.mark.parametrize(
    ("target", "fields"),
    [
        ("/a b", {}),
        ("/a\r\nx: y", {}),
        ("/", {"a": "b\r\nc: d"}),
        ("/", {"a": "b\nc"}),
        ("/", {"a\r": "b"}),
    ],
)
def test_a_request_that_would_forge_a_line_is_refused(target: str, fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="want no line breaks or spaces"):
        request_head("GET", target, fields)


@given(st.dictionaries(NAMES, st.text(), max_size=4))
def test_an_answer_has_as_many_lines_as_fields_whatever_they_say(fields: dict[str, str]) -> None:
    head = response_lines(200, fields.items())
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert len(head.decode().splitlines()) == 1 + len(fields)


@given(
    st.sampled_from(["GET", "POST"]),
    st.text(alphabet="/abc?=%20", min_size=1),
    st.dictionaries(st.text(alphabet="abc-", min_size=1), st.text(alphabet="xyz:;= 1")),
)
def test_a_written_request_is_read_back(method: str, target: str, fields: dict[str, str]) -> None:
    found = parsed_request(request_head(method, target, fields))
    assert (found.method, found.target, found.version) == (method, target, "HTTP/1.1")
    assert {name: found.field(name) for name in fields} == {
        name: value.strip() for name, value in fields.items()
    }


@pytest.mark.parametrize("head", [b"", b"GET /\r\n\r\n", b"GET / x HTTP/1.1\r\n\r\n"])
def test_what_has_no_request_line_is_refused(head: bytes) -> None:
    with pytest.raises(ValueError, match="want a method, a target and a version"):
        parsed_request(head)


def test_of_a_repeated_field_the_first_counts_and_an_absent_one_is_empty() -> None:
    found = parsed_request(b"GET / HTTP/1.1\r\nHost: a\r\nHOST : b\r\n\r\n")
    assert (found.field("host"), found.field("accept")) == ("a", "")


def test_names_are_lower_case_and_strangers_names_are_not_kept() -> None:
    names = FieldNames()
    assert names[b"Content-Type"] == "content-type"
    assert len(names) == 1
    assert names[b"X" * 64] == "x" * 64
    for number in range(1000):
        assert names[b"X-%d" % number] == f"x-{number}"
    assert len(names) == 512


def test_a_status_without_a_phrase_has_none() -> None:
    assert (phrase(404), phrase(299)) == ("Not Found", "")
    assert response_lines(299, ()) == b"HTTP/1.1 299 \r\n"


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text)) == len(text)
    assert one_line(text).isprintable()
