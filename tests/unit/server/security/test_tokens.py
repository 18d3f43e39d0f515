from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.api.keys import PLAIN
from skerry.kit.ids import SeededIds
from skerry.kit.timestamps import rfc3339
from skerry.server.security.tokens import (
    BoundObject,
    ServiceAccountTokens,
    SigningKey,
    TokenError,
    TokenRequest,
    open_signing_keys,
    service_account_of,
)
from tests.kit.server.accounts import Objects
from tests.kit.server.clock import HandClock

EC_KEY = SigningKey(ec.generate_private_key(ec.SECP256R1()))
RSA_KEY = SigningKey(rsa.generate_private_key(65537, 2048))
ROBOT = ("serviceaccounts", "ns", "robot", "u1")
REQUEST = TokenRequest("ns", "robot", "u1")


def tokens(
    objects: Objects, key: SigningKey = EC_KEY, clock: HandClock | None = None, **more: Any
) -> ServiceAccountTokens:
    return ServiceAccountTokens(key, objects.lookup, clock or HandClock(), SeededIds(1), **more)


@pytest.mark.parametrize("key", [EC_KEY, RSA_KEY], ids=["ES256", "RS256"])
async def test_a_token_stands_for_its_account(key: SigningKey) -> None:
    service = tokens(Objects(ROBOT), key)
    token, expires = service.issue(REQUEST)
    validated = await service.validate(token, PLAIN)
    assert validated.user.name == "system:serviceaccount:ns:robot"
    assert validated.user.uid == "u1"
    assert validated.expires == expires
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["kubernetes.io"] == {
        "namespace": "ns",
        "serviceaccount": {"name": "robot", "uid": "u1"},
    }
    assert claims["sub"] == "system:serviceaccount:ns:robot"
    assert validated.user.extra["authentication.kubernetes.io/credential-id"] == (
        f"JTI={claims['jti']}",
    )


async def test_published_keys_check_the_token() -> None:
    for key in (EC_KEY, RSA_KEY):
        service = tokens(Objects(ROBOT), key)
        token, _ = service.issue(REQUEST)
        keys = jwt.PyJWKSet.from_dict(service.jwks())
        kid = jwt.get_unverified_header(token)["kid"]
        jwt.decode(
            token,
            keys[kid],
            audience=service.issuer,
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
        document = service.openid_configuration()
        assert document["issuer"] == service.issuer
        assert document["id_token_signing_alg_values_supported"] == [key.algorithm]


async def test_tokens_of_a_former_issuer_hold_and_are_issued_no_more() -> None:
    objects = Objects(ROBOT)
    before = tokens(objects)
    now = tokens(objects, issuer="https://kcp.default.svc", former_issuers=(before.issuer,))
    old, _ = before.issue(REQUEST)
    assert (await now.validate(old, PLAIN)).audiences == (before.issuer,)
    new, _ = now.issue(REQUEST)
    claims = jwt.decode(new, options={"verify_signature": False})
    assert (claims["iss"], claims["aud"]) == (now.issuer, [now.issuer])
    assert (await now.validate(new, PLAIN)).audiences == (now.issuer,)
    for service, token in (
        (before, new),
        # The name of the former issuer is no audience of tokens that the present one issues.
        (now, now.issue(TokenRequest("ns", "robot", "u1", audiences=(before.issuer,)))[0]),
        (now, before.issue(TokenRequest("ns", "robot", "u1", audiences=(now.issuer,)))[0]),
        (now, tokens(objects, issuer="https://other").issue(REQUEST)[0]),
    ):
        with pytest.raises(TokenError):
            await service.validate(token, PLAIN)


@pytest.mark.parametrize(
    "bound",
    [
        BoundObject("Pod", "p", "pu"),
        BoundObject("Secret", "s", "su"),
        BoundObject("Node", "n", "nu"),
    ],
)
async def test_a_bound_token_dies_with_what_it_is_bound_to(bound: BoundObject) -> None:
    place = "" if bound.kind == "Node" else "ns"
    key = (f"{bound.kind.lower()}s", place, bound.name)
    objects = Objects(ROBOT, (*key, bound.uid))
    service = tokens(objects)
    token, _ = service.issue(TokenRequest("ns", "robot", "u1", bound=bound))
    await service.validate(token, PLAIN)
    objects.found[key] = {"metadata": {"uid": "another"}}
    with pytest.raises(TokenError, match="another UID than the token says"):
        await service.validate(token, PLAIN)
    del objects.found[key]
    with pytest.raises(TokenError, match="has been deleted"):
        await service.validate(token, PLAIN)


async def test_a_pod_token_reports_pod_and_node() -> None:
    service = tokens(Objects(ROBOT, ("pods", "ns", "p", "pu")))
    request = TokenRequest(
        "ns",
        "robot",
        "u1",
        bound=BoundObject("Pod", "p", "pu"),
        node=BoundObject("Node", "n", "nu"),
    )
    extra = (await service.validate(service.issue(request)[0], PLAIN)).user.extra
    prefix = "authentication.kubernetes.io/"
    assert extra[f"{prefix}pod-name"] == ("p",)
    assert extra[f"{prefix}node-name"] == ("n",)
    assert extra[f"{prefix}node-uid"] == ("nu",)


async def test_an_account_made_anew_under_the_same_name_does_not_revive_tokens() -> None:
    objects = Objects(ROBOT)
    service = tokens(objects)
    token, _ = service.issue(REQUEST)
    objects.found[ROBOT[:3]] = {"metadata": {"uid": "u2"}}
    with pytest.raises(TokenError):
        await service.validate(token, PLAIN)


async def test_an_account_being_deleted_keeps_its_tokens_for_a_minute() -> None:
    clock, objects = HandClock(), Objects(ROBOT)
    service = tokens(objects, clock=clock)
    token, _ = service.issue(REQUEST)
    objects.found[ROBOT[:3]]["metadata"]["deletionTimestamp"] = rfc3339(clock.now())
    await service.validate(token, PLAIN)
    clock.advance(61)
    with pytest.raises(TokenError, match="being deleted"):
        await service.validate(token, PLAIN)


async def test_a_token_ends_and_does_not_begin_early() -> None:
    clock = HandClock()
    service = tokens(Objects(ROBOT), clock=clock)
    token, _ = service.issue(REQUEST)
    clock.advance(-30)
    await service.validate(token, PLAIN)
    clock.advance(-60)
    with pytest.raises(TokenError, match="not valid yet"):
        await service.validate(token, PLAIN)
    clock.advance(90 + 3600 + 61)
    with pytest.raises(TokenError, match="expired"):
        await service.validate(token, PLAIN)


async def test_a_token_for_another_audience_does_not_open_the_api() -> None:
    service = tokens(Objects(ROBOT))
    token, _ = service.issue(TokenRequest("ns", "robot", "u1", audiences=("vault",)))
    with pytest.raises(TokenError, match="audiences"):
        await service.validate(token, PLAIN)
    assert (await service.validate(token, PLAIN, ["vault", "x"])).audiences == ("vault",)


async def test_a_token_of_one_cluster_does_not_open_another() -> None:
    service = tokens(Objects(ROBOT))
    token, _ = service.issue(TokenRequest("ns", "robot", "u1", cluster="a"))
    await service.validate(token, "a")
    for other in ("b", PLAIN):
        with pytest.raises(TokenError, match="another cluster"):
            await service.validate(token, other)


async def test_tokens_of_accepted_keys_are_good_and_of_others_are_not() -> None:
    old = tokens(Objects(ROBOT), RSA_KEY)
    token, _ = old.issue(REQUEST)
    rotated = tokens(Objects(ROBOT), EC_KEY)
    rotated.use((EC_KEY, RSA_KEY), EC_KEY.id)
    await rotated.validate(token, PLAIN)
    assert len(rotated.jwks()["keys"]) == 2
    with pytest.raises(TokenError, match="unknown key"):
        await tokens(Objects(ROBOT), EC_KEY).validate(token, PLAIN)


async def test_an_unsigned_or_reissued_token_is_refused() -> None:
    service = tokens(Objects(ROBOT))
    token, _ = service.issue(REQUEST)
    claims = jwt.decode(token, options={"verify_signature": False})
    forged = jwt.encode(claims, "", algorithm="none", headers={"kid": EC_KEY.id})
    with pytest.raises(TokenError):
        await service.validate(forged, PLAIN)
    confused = jwt.encode(claims, "x" * 32, algorithm="HS256", headers={"kid": EC_KEY.id})
    with pytest.raises(TokenError):
        await service.validate(confused, PLAIN)


@pytest.mark.parametrize(
    "change",
    [
        {"kubernetes.io": None},
        {"kubernetes.io": {"namespace": "ns"}},
        {"kubernetes.io": {"namespace": 7, "serviceaccount": {"name": "robot", "uid": "u1"}}},
        {"kubernetes.io": {"namespace": "ns", "serviceaccount": "robot"}},
        {"sub": "system:serviceaccount:ns:admin"},
        {"exp": None},
        {"exp": "soon"},
        {"exp": 10**30},
        {"iss": "https://elsewhere"},
        {"aud": 7},
    ],
)
async def test_well_signed_nonsense_is_refused(change: dict[str, Any]) -> None:
    service = tokens(Objects(ROBOT))
    claims = jwt.decode(service.issue(REQUEST)[0], options={"verify_signature": False}) | change
    claims = {name: value for name, value in claims.items() if value is not None}
    token = jwt.encode(claims, EC_KEY.private, "ES256", headers={"kid": EC_KEY.id})
    with pytest.raises(TokenError):
        await service.validate(token, PLAIN)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(garbage=st.one_of(st.text(), st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*", fullmatch=True)))
async def test_garbage_is_no_token(garbage: str) -> None:
    with pytest.raises(TokenError):
        await tokens(Objects(ROBOT)).validate(garbage, PLAIN)


@given(position=st.integers(0, 10_000), replacement=st.sampled_from("ABCxyz019-_."))
async def test_a_token_changed_in_one_character_is_refused_or_the_same(
    position: int, replacement: str
) -> None:
    service = tokens(Objects(ROBOT))
    token, _ = service.issue(REQUEST)
    # The last character of a segment carries unused bits; any other one counts.
    index = position % (len(token) - 1)
    changed = token[:index] + replacement + token[index + 1 :]
    if changed == token or "." in (token[index], token[index + 1]):
        return
    with pytest.raises(TokenError):
        await service.validate(changed, PLAIN)


def test_the_signing_key_is_kept_and_private(tmp_path: Path) -> None:
    first, second = open_signing_keys(tmp_path / "k")[0], open_signing_keys(tmp_path / "k")[0]
    assert first.id == second.id
    assert stat.S_IMODE((tmp_path / "k" / "sa.key").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("system:serviceaccount:a:b", ("a", "b")),
        ("system:serviceaccount:a:", None),
        ("system:serviceaccount:a", None),
        ("system:serviceaccount:a:b:c", None),
        ("a:b", None),
    ],
)
def test_service_account_names_are_recognised(name: str, found: tuple[str, str] | None) -> None:
    assert service_account_of(name) == found
