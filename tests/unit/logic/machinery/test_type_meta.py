"""What is said of a text that is no typed object."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.type_meta import no_object, unrecognized


def test_what_is_no_object_is_named_by_its_kind_of_json() -> None:
    assert no_object([1]) == (
        "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value "
        'of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
        'Kind string "json:\\"kind,omitempty\\"" }'
    )


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", "<empty>"),
        (b'{"a":', '{"a":'),
        (b'{"a":' + b"1" * 40, '{"a":' + "1" * 25 + " ..."),
        (b"ab", "6162"),
        (b"a" * 31, "61" * 30 + " ..."),
        (b"{\xff", "{\ufffd"),
    ],
)
def test_a_body_is_shown_as_far_as_it_says_something(body: bytes, shown: str) -> None:
    assert unrecognized("Pod", "why", body) == (
        f"the object provided is unrecognized (must be of type Pod): why ({shown})"
    )
