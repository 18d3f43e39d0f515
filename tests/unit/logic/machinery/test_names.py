"""The grammars of names, and the words used to refuse."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery import names

LOWER = string.ascii_lowercase + string.digits


@pytest.mark.parametrize("name", ["a", "my-name", "123-abc", "a" * 63])
def test_a_dns_label_is_accepted(name: str) -> None:
    assert names.dns1123_label(name) == []


def test_dots_in_a_label_get_a_sentence_of_their_own() -> None:
    assert names.dns1123_label("a.b") == ["must not contain dots"]


def test_a_bad_label_is_refused_in_the_words_of_kubernetes() -> None:
    assert names.dns1123_label("Bad_Name") == [
        (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
            "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        )
    ]


def test_a_trailing_newline_is_part_of_the_name_and_refused() -> None:
    assert names.dns1123_label("name\n")
    assert names.qualified_name("name\n")
    assert names.config_map_key("name\n")


def test_length_and_form_are_both_reported() -> None:
    assert names.dns1123_label("A" * 64)[0] == "must be no more than 63 characters"
    assert len(names.dns1123_label("A" * 64)) == 2


def test_a_bad_subdomain_is_refused_in_the_words_of_kubernetes() -> None:
    assert names.dns1123_subdomain("a..b") == [
        (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'example.com', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    ]


def test_a_service_name_must_begin_with_a_letter() -> None:
    assert names.dns1035_label("1a")[0].startswith("a DNS-1035 label must consist of")
    assert names.dns1035_label("a1") == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (".", ["may not be '.'"]),
        ("..", ["may not be '..'"]),
        ("a/b%c", ["may not contain '/'", "may not contain '%'"]),
        ("system:node", []),
    ],
)
def test_path_segments_keep_to_their_segment(text: str, wrong: list[str]) -> None:
    assert names.path_segment(text) == wrong


def test_a_prefix_may_be_a_dot_because_more_follows() -> None:
    assert names.path_segment_prefix(".") == []


@pytest.mark.parametrize("key", ["app", "example.com/app", "A_b.c-1", "a" * 63])
def test_label_keys_are_accepted(key: str) -> None:
    assert names.qualified_name(key) == []


@pytest.mark.parametrize(
    ("key", "begins"),
    [
        ("/app", "prefix part must be non-empty"),
        ("Example.com/app", "prefix part a lowercase RFC 1123 subdomain"),
        ("example.com/", "name part must be non-empty"),
        ("a" * 64, "name part must be no more than 63 characters"),
        ("-a", "name part must consist of alphanumeric characters"),
        ("a/b/c", "a qualified name must consist of alphanumeric characters"),
    ],
)
def test_bad_label_keys_are_refused(key: str, begins: str) -> None:
    assert names.qualified_name(key)[0].startswith(begins)


def test_the_callers_list_is_its_own() -> None:
    names.qualified_name("-a").clear()
    assert names.qualified_name("-a")


def test_label_values_may_be_empty() -> None:
    assert names.label_value("") == []
    assert names.label_value("a b")[0].startswith("a valid label must be an empty string or")
    assert names.label_value("a" * 64) == ["must be no more than 63 characters"]


def test_bytes_are_counted_not_characters() -> None:
    assert "must be no more than 63 characters" in names.label_value("é" * 40)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("http", []),
        ("a" * 16, ["must be no more than 15 characters"]),
        ("80", ["must contain at least one letter (a-z)"]),
        ("a--b", ["must not contain consecutive hyphens"]),
        ("-a", ["must not begin or end with a hyphen"]),
        (
            "A",
            [
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
            ],
        ),
    ],
)
def test_port_names(text: str, wrong: list[str]) -> None:
    assert names.port_name(text) == wrong


def test_port_numbers() -> None:
    assert names.port_number(1) == names.port_number(65535) == []
    assert names.port_number(0) == ["must be between 1 and 65535, inclusive"]


def test_environment_names_are_anything_printable_without_an_equals_sign() -> None:
    assert names.relaxed_env_var_name("1 A!") == []
    assert names.relaxed_env_var_name("") == ["environment variable name must be non-empty"]
    assert names.relaxed_env_var_name("a=b")[0].endswith("other than '='")


def test_config_keys_are_safe_file_names() -> None:
    assert names.config_map_key("key.name") == []
    assert names.config_map_key("..data") == ["must not start with '..'"]
    assert names.config_map_key(".") == ["must not be '.'"]
    assert names.config_map_key("a/b")[0].startswith("a valid config key must consist of")


def test_percents_and_wildcards() -> None:
    assert names.percent("50%") == []
    assert names.percent("50")
    assert names.wildcard_subdomain("*.example.com") == []
    assert names.wildcard_subdomain("*")[0].startswith("a wildcard DNS-1123 subdomain must start")
    assert names.http_header_name("X-A") == []
    assert names.http_header_name("X A")
    assert names.http_path("/a") == []
    assert names.http_path("a b")[0].startswith("Invalid path (")


@given(st.text(alphabet=LOWER + "-", max_size=80), st.text(alphabet=LOWER, min_size=5, max_size=5))
def test_generated_names_never_outgrow_a_label(base: str, suffix: str) -> None:
    name = names.generated_name(base, suffix)
    assert len(name) <= 63
    assert name.endswith(suffix)
    assert base.startswith(name[: -len(suffix)])


@given(st.text(alphabet=LOWER + "-.", max_size=70))
def test_every_label_is_a_subdomain_and_every_1035_label_is_a_1123_label(text: str) -> None:
    if not names.dns1123_label(text):
        assert not names.dns1123_subdomain(text)
    if not names.dns1035_label(text):
        assert not names.dns1123_label(text)
