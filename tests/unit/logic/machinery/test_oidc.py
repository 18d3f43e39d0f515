"""Whom the claims of an ID token stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.oidc import OidcError, OidcSettings, check_settings, person_of

NOW = 1_900_000_000.0
SETTINGS = OidcSettings("https://login.example/realm", ("skerry", "other"), groups_claim="groups")
CLAIMS: dict[str, Any] = {
    "iss": "https://login.example/realm",
    "aud": "skerry",
    "sub": "alice",
    "exp": NOW + 300,
    "iat": NOW - 10,
}


def test_a_token_stands_for_its_subject_under_the_name_of_the_issuer() -> None:
    person = person_of(SETTINGS, {**CLAIMS, "groups": ["ops", "dev"], "jti": "7"}, NOW)
    assert person.name == "https://login.example/realm#alice"
    assert person.groups == ("ops", "dev")
    assert person.expires == NOW + 300
    assert person.token_id == "7"


@pytest.mark.parametrize(
    ("changes", "claims", "name"),
    [
        ({"username_prefix": "-"}, {}, "alice"),
        ({"username_prefix": "oidc:"}, {}, "oidc:alice"),
        ({"username_claim": "email"}, {"email": "a@example.org"}, "a@example.org"),
        ({"username_claim": "email"}, {"email": "a@b", "email_verified": True}, "a@b"),
        ({"username_claim": "email", "username_prefix": "x:"}, {"email": "a@b"}, "x:a@b"),
        ({"username_claim": "name"}, {"name": "A"}, "https://login.example/realm#A"),
    ],
)
def test_names_are_mapped_as_kube_apiserver_does(
    changes: dict[str, Any], claims: dict[str, Any], name: str
) -> None:
    assert person_of(replace(SETTINGS, **changes), {**CLAIMS, **claims}, NOW).name == name


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [(None, ()), ("ops", ("g:ops",)), ([], ()), (["ops", "dev"], ("g:ops", "g:dev"))],
)
def test_groups_are_one_or_a_list_and_carry_their_prefix(
    groups: Any, wanted: tuple[str, ...]
) -> None:
    settings = replace(SETTINGS, groups_prefix="g:")
    assert person_of(settings, {**CLAIMS, "groups": groups}, NOW).groups == wanted
    nobody = replace(SETTINGS, groups_claim="")
    assert person_of(nobody, {**CLAIMS, "groups": groups}, NOW).groups == ()


@pytest.mark.parametrize(
    ("changes", "claims", "wanted"),
    [
        ({}, {"iss": "https://login.example/realm/"}, "another issuer"),
        ({}, {"iss": None}, "another issuer"),
        ({}, {"aud": "elsewhere"}, "another audience"),
        ({}, {"aud": []}, "another audience"),
        ({}, {"aud": [["skerry"], {"x": 1}, 7]}, "another audience"),
        ({}, {"aud": None}, "another audience"),
        ({}, {"exp": None}, "never expires"),
        ({}, {"exp": NOW - 31}, "has expired"),
        ({}, {"exp": "tomorrow"}, "'exp' is no time"),
        ({}, {"exp": True}, "'exp' is no time"),
        ({}, {"exp": 10**400}, "'exp' is no time"),
        ({}, {"exp": float("inf")}, "'exp' is no time"),
        ({}, {"exp": float("nan")}, "'exp' is no time"),
        ({}, {"exp": -1}, "'exp' is no time"),
        ({}, {"nbf": NOW + 31}, "not valid yet"),
        ({}, {"iat": NOW + 31}, "not valid yet"),
        ({}, {"sub": ""}, "'sub' names no user"),
        ({}, {"sub": 7}, "'sub' names no user"),
        ({}, {"sub": None}, "'sub' names no user"),
        ({"username_claim": "email"}, {}, "'email' names no user"),
        ({"username_claim": "email"}, {"email": "a@b", "email_verified": False}, "not verified"),
        ({"username_claim": "email"}, {"email": "a@b", "email_verified": "yes"}, "not verified"),
        ({"username_prefix": "-"}, {"sub": "system:admin"}, "user whose name begins"),
        ({"username_prefix": "-"}, {"sub": "system:serviceaccount:a:b"}, "user whose name begins"),
        ({"username_prefix": "sys"}, {"sub": "tem:masters"}, "user whose name begins"),
        ({}, {"groups": ["ops", "system:masters"]}, "group whose name begins"),
        ({}, {"groups": "system:kcp:admin"}, "group whose name begins"),
        ({"groups_prefix": "sys"}, {"groups": "tem:masters"}, "group whose name begins"),
        ({}, {"groups": ["ops", 7]}, "no list of groups"),
        ({}, {"groups": [""]}, "no list of groups"),
        ({}, {"groups": {"ops": True}}, "no list of groups"),
        ({}, {"sub": "a" * 2000}, "at most 1024 printable"),
        ({}, {"sub": "a\nb"}, "at most 1024 printable"),
        ({"required_claims": {"hd": "example.org"}}, {}, "'hd' is not 'example.org'"),
        ({"required_claims": {"hd": "example.org"}}, {"hd": "x"}, "'hd' is not 'example.org'"),
        ({"required_claims": {"hd": "1"}}, {"hd": 1}, "'hd' is not '1'"),
    ],
)
def test_a_token_that_does_not_hold_is_refused_with_the_reason(
    changes: dict[str, Any], claims: dict[str, Any], wanted: str
) -> None:
    with pytest.raises(OidcError, match=wanted):
        person_of(replace(SETTINGS, **changes), {**CLAIMS, **claims}, NOW)


def test_clocks_may_differ_a_little() -> None:
    person_of(SETTINGS, {**CLAIMS, "exp": NOW - 29, "nbf": NOW + 29, "iat": NOW + 29}, NOW)


@pytest.mark.parametrize("audience", ["skerry", "other", ["x", "other"]])
def test_one_of_the_audiences_is_enough(audience: Any) -> None:
    person_of(SETTINGS, {**CLAIMS, "aud": audience}, NOW)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*CLAIMS, "groups", "nbf", "jti"]), anything))
def test_whatever_an_issuer_says_nobody_becomes_the_servers_own(claims: dict[str, Any]) -> None:
    settings = replace(SETTINGS, username_prefix="-")
    try:
        person = person_of(settings, {**CLAIMS, **claims}, NOW)
    except OidcError:
        return
    for name in (person.name, *person.groups):
        assert name
        assert not name.startswith("system:")


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"issuer_url": "http://login.example"}, "--oidc-issuer-url"),
        ({"issuer_url": "https://"}, "--oidc-issuer-url"),
        ({"issuer_url": "https://a:b@login.example"}, "--oidc-issuer-url"),
        ({"issuer_url": "https://login.example?x=1"}, "--oidc-issuer-url"),
        ({"issuer_url": "https://login.example#x"}, "--oidc-issuer-url"),
        ({"issuer_url": "https://login.example:99999"}, "--oidc-issuer-url"),
        ({"client_ids": ()}, "--oidc-client-id"),
        ({"client_ids": ("",)}, "--oidc-client-id"),
        ({"username_claim": ""}, "--oidc-username-claim"),
        ({"signing_algs": ("RS256", "HS256")}, "--oidc-signing-algs HS256"),
        ({"signing_algs": ("none",)}, "--oidc-signing-algs none"),
        ({"signing_algs": ()}, "--oidc-signing-algs"),
        ({"username_prefix": "system:"}, "--oidc-username-prefix"),
        ({"groups_prefix": "system:x"}, "--oidc-groups-prefix"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_flag(
    changes: dict[str, Any], flag: str
) -> None:
    with pytest.raises(OidcError, match=flag):
        check_settings(replace(SETTINGS, **changes))
    check_settings(SETTINGS)
