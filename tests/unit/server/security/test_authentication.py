from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from skerry.api.errors import BadRequest, Forbidden, Unauthorized
from skerry.api.keys import PLAIN
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.workspaces.principals import RESERVED
from skerry.server.http.message import Peer, Request
from skerry.server.security.authentication import ANONYMOUS, Authentication
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.security.pki import Authority, new_ca
from skerry.server.security.static_tokens import StaticTokens
from skerry.server.security.tokens import ServiceAccountTokens, TokenRequest, open_signing_keys
from skerry.server.user import User
from tests.kit.machinery.roles import binding, role, user
from tests.kit.server.accounts import Objects
from tests.kit.server.clock import HandClock

TOKENS = 'secret,alice,uid-1,"dev,ops"\nother, bob , 2\n\n,nobody,3\n'


def request(
    token: str = "", certificate: bytes | None = None, headers: dict[str, str] | None = None
) -> Request:
    carried = {"authorization": f"Bearer {token}"} if token else {}
    peer = Peer("127.0.0.1", certificate)
    return Request("GET", "/", headers={**carried, **(headers or {})}, peer=peer)


def certificate(name: str, groups: tuple[str, ...], clock: HandClock) -> bytes:
    authority = Authority(new_ca("ca", clock), clock)
    return authority.client(name, groups).x509.public_bytes(Encoding.DER)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def chain(clock: HandClock) -> Authentication:
    return Authentication(clock, RbacAuthorizer(), static=StaticTokens(TOKENS))


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("system:serviceaccount:default:robot", ()),
        ("system:kcp:serviceaccount:c1:default:robot", ()),
        ("system:kcp:user:c1:bob", ()),
        ("system:edge:c1:u", ()),
        ("apis.kcp.io:binding:bob", ()),
        ("bob", ("system:serviceaccounts",)),
        ("bob", ("ops", "system:serviceaccounts:default")),
        ("bob", ("system:edges",)),
    ],
)
async def test_a_certificate_takes_no_name_that_the_hub_gives_out(
    clock: HandClock, name: str, groups: tuple[str, ...]
) -> None:
    hub = Authentication(clock, RbacAuthorizer(), reserved=RESERVED)
    shown = request(certificate=certificate(name, groups, clock))
    with pytest.raises(Unauthorized):
        await hub.authenticate(shown, "c1")
    plain = Authentication(clock, RbacAuthorizer())
    assert (await plain.authenticate(shown, PLAIN)).name == name


async def test_without_credentials_one_is_nobody(chain: Authentication) -> None:
    assert await chain.authenticate(request(), PLAIN) == ANONYMOUS


async def test_nobody_is_refused_where_anonymous_is_off(clock: HandClock) -> None:
    chain = Authentication(clock, RbacAuthorizer(), anonymous=False)
    with pytest.raises(Unauthorized):
        await chain.authenticate(request(), PLAIN)


async def test_a_certificate_names_its_user_and_groups(
    chain: Authentication, clock: HandClock
) -> None:
    der = certificate("jane", ("devs", "ops"), clock)
    for _ in range(2):
        found = await chain.authenticate(request("wrong", der), PLAIN)
        assert found.name == "jane"
        assert set(found.groups) == {"devs", "ops", "system:authenticated"}
    (credential,) = found.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")


async def test_a_certificate_ends_though_its_connection_goes_on(
    chain: Authentication, clock: HandClock
) -> None:
    der = certificate("jane", (), clock)
    await chain.authenticate(request(certificate=der), PLAIN)
    clock.advance(timedelta(days=366).total_seconds())
    with pytest.raises(Unauthorized):
        await chain.authenticate(request(certificate=der), PLAIN)


async def test_a_certificate_without_a_name_is_nobody(
    chain: Authentication, clock: HandClock
) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    nameless = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    signed = Authority(new_ca("ca", clock), clock).sign_request(nameless.sign(key, hashes.SHA256()))
    der = x509.load_pem_x509_certificate(signed).public_bytes(Encoding.DER)
    assert await chain.authenticate(request(certificate=der), PLAIN) == ANONYMOUS


@pytest.mark.parametrize("garbage", [b"", b"garbage", b"0\x03\x02\x01\x01"])
async def test_a_garbage_certificate_is_refused(chain: Authentication, garbage: bytes) -> None:
    with pytest.raises(Unauthorized):
        await chain.authenticate(request(certificate=garbage), PLAIN)


async def test_a_static_token_stands_for_its_user(chain: Authentication) -> None:
    found = await chain.authenticate(request("secret"), PLAIN)
    assert found == User("alice", "uid-1", ("dev", "ops", "system:authenticated"))
    assert await chain.authenticate(request("secret"), PLAIN) is found


@pytest.mark.parametrize("token", ["wrong", "secret2", "SECRET", "a.b.c", "é", "\udc80"])
async def test_a_wrong_token_is_refused_and_never_nobody(chain: Authentication, token: str) -> None:
    with pytest.raises(Unauthorized):
        await chain.authenticate(request(token), PLAIN)


@pytest.mark.parametrize("header", ["Basic abc", "Bearer", "Bearer   ", ""])
async def test_a_header_without_bearer_token_is_no_credential(
    chain: Authentication, header: str
) -> None:
    asked = request(headers={"authorization": header})
    assert await chain.authenticate(asked, PLAIN) == ANONYMOUS


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
async def test_the_scheme_is_case_insensitive(chain: Authentication, scheme: str) -> None:
    asked = request(headers={"authorization": f"{scheme} secret"})
    assert (await chain.authenticate(asked, PLAIN)).name == "alice"


def test_a_token_file_with_short_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2: want at least 3 columns"):
        StaticTokens("a,b,c\nd,e\n")


async def test_a_service_account_token_dies_with_its_account(
    clock: HandClock, tmp_path: Path
) -> None:
    objects = Objects(("serviceaccounts", "ns", "robot", "u1"))
    tokens = ServiceAccountTokens(
        open_signing_keys(tmp_path)[0], objects.lookup, clock, SeededIds(1)
    )
    chain = Authentication(clock, RbacAuthorizer(), service_accounts=tokens)
    token, _ = tokens.issue(TokenRequest("ns", "robot", "u1"))
    found = await chain.authenticate(request(token), PLAIN)
    assert found.name == "system:serviceaccount:ns:robot"
    assert found.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    )
    asked = objects.asked
    await chain.authenticate(request(token), PLAIN)
    assert objects.asked == asked
    objects.found.clear()
    clock.advance(11)
    with pytest.raises(Unauthorized):
        await chain.authenticate(request(token), PLAIN)


async def test_a_remembered_token_does_not_outlive_its_end(
    clock: HandClock, tmp_path: Path
) -> None:
    objects = Objects(("serviceaccounts", "ns", "robot", "u1"))
    tokens = ServiceAccountTokens(
        open_signing_keys(tmp_path)[0], objects.lookup, clock, SeededIds(1)
    )
    chain = Authentication(clock, RbacAuthorizer(), service_accounts=tokens)
    token, _ = tokens.issue(TokenRequest("ns", "robot", "u1", lifetime_seconds=600))
    clock.advance(595)
    await chain.authenticate(request(token), PLAIN)
    clock.advance(100)
    with pytest.raises(Unauthorized):
        await chain.authenticate(request(token), PLAIN)


def impersonators(*rules: dict[str, Any]) -> RbacAuthorizer:
    authorizer = RbacAuthorizer()
    authorizer.put(PLAIN, "ClusterRole", role("r", *rules))
    authorizer.put(PLAIN, "ClusterRoleBinding", binding("b", "ClusterRole", "r", user("alice")))
    return authorizer


def may(resource: str, *names: str, group: str = "") -> dict[str, Any]:
    return {
        "verbs": ["impersonate"],
        "apiGroups": [group],
        "resources": [resource],
        "resourceNames": list(names),
    }


AUTHN = "authentication.k8s.io"


async def test_impersonation_needs_leave_for_every_part(clock: HandClock) -> None:
    authorizer = impersonators(
        may("users", "bob"),
        may("groups", "g,1", "g2"),
        may("uids", "7", group=AUTHN),
        may("userextras/acme.com/scope", "x", group=AUTHN),
    )
    chain = Authentication(clock, authorizer, static=StaticTokens(TOKENS))
    headers = {
        "impersonate-user": "bob",
        "impersonate-group": "g,1\ng2",
        "impersonate-uid": "7",
        "impersonate-extra-acme.com%2fscope": "x",
    }
    asked = request("secret", headers=headers)
    found = await chain.authenticate(asked, PLAIN)
    assert found == User(
        "bob", "7", ("g,1", "g2", "system:authenticated"), {"acme.com/scope": ("x",)}
    )
    assert asked.impersonator is not None
    assert asked.impersonator.name == "alice"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            {"impersonate-user": "eve"},
            (
                'users "eve" is forbidden: User "alice" cannot impersonate resource "users" '
                'in API group "" at the cluster scope'
            ),
        ),
        (
            {"impersonate-user": "bob", "impersonate-group": "system:masters"},
            (
                'groups "system:masters" is forbidden: User "alice" cannot impersonate resource '
                '"groups" in API group "" at the cluster scope'
            ),
        ),
        (
            {"impersonate-user": "system:serviceaccount:ns:robot"},
            (
                'serviceaccounts "robot" is forbidden: User "alice" cannot impersonate resource '
                '"serviceaccounts" in API group "" in the namespace "ns"'
            ),
        ),
        (
            {"impersonate-user": "bob", "impersonate-extra-scope": "y"},
            (
                'userextras.authentication.k8s.io "y" is forbidden: User "alice" cannot '
                'impersonate resource "userextras/scope" in API group "authentication.k8s.io" '
                "at the cluster scope"
            ),
        ),
    ],
)
async def test_impersonation_without_leave_is_forbidden(
    clock: HandClock, headers: dict[str, str], message: str
) -> None:
    chain = Authentication(clock, impersonators(may("users", "bob")), static=StaticTokens(TOKENS))
    with pytest.raises(Forbidden) as error:
        await chain.authenticate(request("secret", headers=headers), PLAIN)
    assert error.value.message == message


async def test_impersonating_a_group_needs_a_user(chain: Authentication) -> None:
    with pytest.raises(BadRequest):
        await chain.authenticate(request("secret", headers={"impersonate-group": "g"}), PLAIN)


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        (
            "system:serviceaccount:ns:robot",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        ("system:anonymous", ("system:unauthenticated",)),
        ("bob", ("system:authenticated",)),
    ],
)
async def test_an_impersonated_user_gets_the_groups_that_follow_from_the_name(
    clock: HandClock, name: str, groups: tuple[str, ...]
) -> None:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    chain = Authentication(clock, impersonators(everything), static=StaticTokens(TOKENS))
    asked = request("secret", headers={"impersonate-user": name})
    assert (await chain.authenticate(asked, PLAIN)).groups == groups


def nested(part: str) -> str:
    """Return a token one part of which is JSON deeper than a parser can follow."""
    deep = base64.urlsafe_b64encode(b'{"a":' * 2000 + b"1" + b"}" * 2000).rstrip(b"=").decode()
    plain = base64.urlsafe_b64encode(b'{"alg":"RS256","kid":"x"}').rstrip(b"=").decode()
    return f"{deep}.{plain}.c2ln" if part == "header" else f"{plain}.{deep}.c2ln"


@pytest.mark.parametrize("token", [nested("header"), nested("claims"), "a.b.c" * 10_000])
async def test_a_token_that_cannot_be_read_is_refused(
    clock: HandClock, tmp_path: Path, token: str
) -> None:
    tokens = ServiceAccountTokens(
        open_signing_keys(tmp_path)[0], Objects().lookup, clock, SeededIds(1)
    )
    chain = Authentication(clock, RbacAuthorizer(), service_accounts=tokens)
    with pytest.raises(Unauthorized):
        await chain.authenticate(request(token), PLAIN)


async def test_a_static_token_is_remembered_once_whatever_clusters_it_is_shown_to(
    chain: Authentication,
) -> None:
    for number in range(100):
        await chain.authenticate(request("secret"), f"cluster-{number}")
    assert len(chain._static_users) == 1
    assert not chain._tokens._users
    for number in range(5000):
        spelled = "Bearer" + " " * (number + 1) + "secret"
        await chain.authenticate(request(headers={"authorization": spelled}), PLAIN)
    assert len(chain._static_users) <= 1024


@pytest.mark.parametrize(
    "headers",
    [
        {"impersonate-user": "x" * 5000},
        {"impersonate-user": "x", "impersonate-group": "a\n" + "x" * 5000},
        {"impersonate-user": "x", "impersonate-uid": "x" * 5000},
        {"impersonate-user": "x", "impersonate-extra-scope": "x" * 5000},
    ],
    ids=["user", "group", "uid", "extra"],
)
async def test_impersonated_names_have_a_limit(
    chain: Authentication, headers: dict[str, str]
) -> None:
    with pytest.raises(BadRequest, match="at most 1024 characters"):
        await chain.authenticate(request(headers=headers), PLAIN)
