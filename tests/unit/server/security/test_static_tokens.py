"""Tokens from a file, as kube-apiserver reads them."""

from __future__ import annotations

import pytest

from skerry.server.security.static_tokens import StaticTokens


def test_a_line_is_a_token_its_user_and_perhaps_groups() -> None:
    tokens = StaticTokens('t1,ann,1,"dev,ops"\n\nt2, bob, 2\n')
    ann, bob = tokens.user("t1"), tokens.user("t2")
    assert ann is not None
    assert (ann.name, ann.uid, ann.groups) == ("ann", "1", ("dev", "ops"))
    assert bob is not None
    assert (bob.name, bob.groups) == ("bob", ())


def test_what_is_no_token_stands_for_nobody() -> None:
    tokens = StaticTokens("t1,ann,1\n,nobody,2\n")
    assert tokens.user("t2") is None
    assert tokens.user("") is None
    assert tokens.user("\ud800") is None


def test_of_two_lines_with_one_token_the_later_counts() -> None:
    found = StaticTokens("t,ann,1\nt,bob,2\n").user("t")
    assert found is not None
    assert found.name == "bob"


def test_a_line_with_too_little_is_named() -> None:
    with pytest.raises(ValueError, match=r"line 2: want at least 3 columns .* found 2"):
        StaticTokens("t,ann,1\nu,bob\n")


def test_tokens_themselves_are_not_kept() -> None:
    assert "secret-token" not in repr(vars(StaticTokens("secret-token,ann,1\n")))
