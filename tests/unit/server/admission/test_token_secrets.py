"""A Secret that names an account is filled with a token of that very account, bound to both."""

from __future__ import annotations

import base64
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.server.admission.operation import Operation, Verb
from skerry.server.admission.token_secrets import ACCOUNT, TOKEN_TYPE, TokenSecrets
from skerry.server.codec import encode
from skerry.server.security.tokens import ServiceAccountTokens, SigningKey
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.server.accounts import Objects
from tests.kit.server.calls import call_of
from tests.kit.server.clock import HandClock

KEY = SigningKey(ec.generate_private_key(ec.SECP256R1()))
UID = "kubernetes.io/service-account.uid"


def secret(kind: str = TOKEN_TYPE, data: Object | None = None, **notes: Any) -> Object:
    annotations = {ACCOUNT: "robot", **{name.replace("_uid", UID): v for name, v in notes.items()}}
    metadata = {"name": "s", "namespace": "ns", "uid": "u-secret", "annotations": annotations}
    return {"metadata": metadata, "type": kind, **({"data": data} if data else {})}


def _account(name: str) -> Any:
    return {ACCOUNT: name}


async def admitted(
    obj: Object, verb: Verb = "CREATE", *, cluster: str = "root", inert: bool = False, **more: Any
) -> dict[str, str]:
    """Return the data of *obj* after a server saw it whose ``root`` has the account."""
    store = MemoryStore("test")
    metadata = {"name": "robot", "namespace": "ns", "uid": "u-robot"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    key = ObjectKey("", "serviceaccounts", "root", "ns", "robot")
    await store.commit([Write(key.path(), encode(account))])
    tokens = ServiceAccountTokens(KEY, Objects().lookup, HandClock(), SeededIds(1))
    call = call_of(resource("secrets"), cluster=cluster, namespace="ns")
    rule = TokenSecrets(store, tokens, lambda: "PEM", lambda _: inert)
    await rule.admit(Operation(call, verb, obj, **more))
    data = obj.get("data") or {}
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


async def test_the_token_is_the_accounts_and_ends_with_the_secret() -> None:
    made = secret()
    found = await admitted(made)
    assert (found["ca.crt"], found["namespace"]) == ("PEM", "ns")
    claims = jwt.decode(found["token"], options={"verify_signature": False})
    assert claims["sub"] == "system:serviceaccount:ns:robot"
    assert claims["kubernetes.io"]["serviceaccount"] == {"name": "robot", "uid": "u-robot"}
    assert claims["kubernetes.io"]["secret"] == {"name": "s", "uid": "u-secret"}
    assert made["metadata"]["annotations"][UID] == "u-robot"


async def test_what_else_the_secret_holds_stays() -> None:
    more = {"mine": base64.b64encode(b"x").decode()}
    assert (await admitted(secret(data=more)))["mine"] == "x"


async def test_a_token_that_was_taken_out_comes_back() -> None:
    assert "token" in await admitted(secret(uid="u-robot"), "UPDATE", old=secret())


async def test_a_token_that_is_there_is_left() -> None:
    held = {"token": base64.b64encode(b"held").decode()}
    assert await admitted(secret(data=held), "UPDATE", old=secret(data=held)) == {"token": "held"}


@pytest.mark.parametrize(
    ("obj", "options"),
    [
        (secret("Opaque"), {}),
        (secret(_uid="u-of-an-earlier-one"), {}),
        (secret(**_account("nobody")), {}),
        (secret(**_account("")), {}),
        (secret(), {"cluster": "away"}),
        (secret(), {"inert": True}),
        (secret(), {"dry_run": True}),
        (secret(), {"verb": "DELETE"}),
    ],
    ids=["other type", "other uid", "no account", "unnamed", "other cluster", "inert", "trial",
         "deleted"],
)  # fmt: skip
async def test_nobody_else_gets_a_token(obj: Object, options: Any) -> None:
    assert await admitted(obj, **options) == {}
