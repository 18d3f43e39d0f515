"""Users by the headers of a proxy."""

from __future__ import annotations

from pathlib import Path

from skerry.logic.machinery.front_proxy import FrontProxySettings, named

SETTINGS = FrontProxySettings(
    Path("ca"), frozenset(), ("x-remote-user", "x-user"), ("x-remote-group", "x-group")
)


def test_the_first_header_that_is_there_names_the_user() -> None:
    found = named(SETTINGS, {"x-user": "jane", "x-group": "b, d", "x-remote-group": "a\nc, e"})
    assert found == ("jane", ("a", "c, e", "b", "d"), {})
    both = named(SETTINGS, {"x-user": "jane", "x-remote-user": "joe\nnobody"})
    assert both is not None
    assert both.name == "joe"


def test_what_else_is_known_keeps_every_value_under_a_key_in_lower_case() -> None:
    headers = {
        "x-remote-user": "jane",
        "x-remote-extra-example.com%2fScope": "a\nb",
        "x-remote-extra-": "nothing",
    }
    assert named(SETTINGS, headers) == ("jane", (), {"example.com/scope": ("a", "b")})


def test_without_a_name_nobody_is_named() -> None:
    assert named(SETTINGS, {"x-remote-user": " ", "x-remote-group": "system:masters"}) is None
