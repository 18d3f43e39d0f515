"""Warnings of an answer: each once, escaped, and not more than a client takes."""

from __future__ import annotations

from skerry.server.http.message import Response
from skerry.server.response.warnings import with_warnings


def warned(*texts: str) -> list[str]:
    answer = with_warnings(Response(200, b""), list(texts))
    return [value for name, value in answer.headers if name == "Warning"]


def test_a_warning_is_said_once_in_its_order() -> None:
    assert warned("one", "two", "one") == ['299 - "one"', '299 - "two"']


def test_what_would_end_the_text_or_the_line_is_escaped() -> None:
    assert warned('a "b" \\c\nd') == ['299 - "a \\"b\\" \\\\c d"']


def test_other_headers_stay() -> None:
    answer = Response(200, b"", headers=[("X", "y")])
    assert with_warnings(answer, ["w"]).headers == [("X", "y"), ("Warning", '299 - "w"')]


def test_too_many_are_shortened_and_the_rest_left_out() -> None:
    long = [f"{number:03}" + "x" * 400 for number in range(20)]
    found = warned(*long)
    assert len(found) == 16
    assert all(len(each) == len('299 - ""') + 256 for each in found)
    assert warned("x" * 4096) == ['299 - "' + "x" * 4096 + '"'], "one that fits is whole"
