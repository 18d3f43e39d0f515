"""Tokens of ServiceAccounts: for whom, for how long, bound to what; and whose a token is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from skerry.api.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.server.codec import encode
from skerry.server.http.message import Request, Response
from skerry.server.request.call import Call
from skerry.server.security.tokens import ServiceAccountTokens, SigningKey
from skerry.server.subresources.tokens import TokenHandler
from skerry.server.user import User
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.server.accounts import Objects
from tests.kit.server.calls import call_of
from tests.kit.server.clock import HandClock

KEY = SigningKey(ec.generate_private_key(ec.SECP256R1()))
POD = {"kind": "Pod", "name": "p"}


def call(cluster: str = "root", name: str = "robot", user: User | None = None, **spec: Any) -> Call:
    body = orjson.dumps({"kind": "TokenRequest", "spec": spec})
    request = Request("POST", "/", headers={"content-type": "application/json"}, body=body)
    kind = resource("serviceaccounts")
    return call_of(
        kind, request=request, cluster=cluster, namespace="ns", name=name, subresource="token",
        user=user,
    )  # fmt: skip


async def ask(asked: Call) -> Object:
    """Return the answer of a server with two accounts, a pod of one of them, its node, a Secret."""
    store = MemoryStore("test")
    objects: list[tuple[str, str, str, Object]] = [
        ("serviceaccounts", "ns", "robot", {}),
        ("serviceaccounts", "ns", "other", {}),
        ("pods", "ns", "p", {"spec": {"serviceAccountName": "robot", "nodeName": "n"}}),
        ("secrets", "ns", "s", {}),
        ("nodes", "", "n", {}),
    ]
    for plural, namespace, name, more in objects:
        obj = {
            "apiVersion": "v1", "kind": "X", "metadata": {"name": name, "uid": f"u-{name}"}, **more
        }  # fmt: skip
        key = ObjectKey("", plural, "root", namespace, name).path()
        await store.commit([Write(key, encode(obj))])
    tokens = ServiceAccountTokens(KEY, Objects().lookup, HandClock(), SeededIds(1))
    answer = await TokenHandler(store, tokens, timedelta(hours=2)).handle(asked)
    assert isinstance(answer, Response)
    assert isinstance(answer.body, bytes)
    assert answer.status == 201
    made: Object = orjson.loads(answer.body)
    return made


def claims(answer: Object) -> Any:
    token = answer["status"]["token"]
    return jwt.decode(token, options={"verify_signature": False})


async def test_a_token_is_its_accounts_for_an_hour_unless_asked_otherwise() -> None:
    found = await ask(call())
    found_claims = claims(found)
    assert found_claims["sub"] == "system:serviceaccount:ns:robot"
    assert found_claims["exp"] - found_claims["iat"] == found["spec"]["expirationSeconds"] == 3600
    short = claims(await ask(call(expirationSeconds=600, audiences=["x"])))
    assert (short["exp"] - short["iat"], short["aud"]) == (600, ["x"])


async def test_no_token_lives_longer_than_the_server_allows_and_its_client_is_warned() -> None:
    asked = call(expirationSeconds=100_000)
    found_claims = claims(await ask(asked))
    assert found_claims["exp"] - found_claims["iat"] == 7200
    assert "shortened to 7200 seconds" in asked.warnings[0]


@pytest.mark.parametrize("seconds", [0, -1, 599, (1 << 32) + 1])
async def test_a_duration_that_is_too_short_or_too_long_is_refused(seconds: int) -> None:
    with pytest.raises(Invalid, match="expirationSeconds"):
        await ask(call(expirationSeconds=seconds))


async def test_accounts_of_other_clusters_are_not_found() -> None:
    for asked in (call("away"), call(name="nobody")):
        with pytest.raises(NotFound):
            await ask(asked)


async def test_a_token_that_is_bound_to_a_pod_names_its_node_too() -> None:
    found_claims = claims(await ask(call(boundObjectRef={**POD, "uid": "u-p"})))["kubernetes.io"]
    assert found_claims["pod"] == {"name": "p", "uid": "u-p"}
    assert found_claims["node"] == {"name": "n", "uid": "u-n"}


async def test_a_token_is_bound_to_a_pod_of_the_same_account_only() -> None:
    with pytest.raises(BadRequest, match="different serviceaccount name"):
        await ask(call(name="other", boundObjectRef=POD))
    node = User("system:node:n", groups=("system:nodes",))
    reference = {**POD, "uid": "u-p"}
    await ask(call(user=node, boundObjectRef=reference))
    with pytest.raises(BadRequest):
        await ask(call(name="other", user=node, boundObjectRef=reference))


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ({"kind": "ConfigMap", "name": "c"}, BadRequest),
        ({"kind": "Pod", "name": "gone"}, NotFound),
        ({"kind": "Secret", "name": "s", "uid": "u-of-an-earlier-one"}, Conflict),
    ],
)
async def test_what_a_token_cannot_be_bound_to_is_refused(
    reference: Object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await ask(call(boundObjectRef=reference))


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("n", {}),
        ("n", {"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "u-s"}}),
        ("n", {"boundObjectRef": POD}),
        ("m", {"boundObjectRef": {**POD, "uid": "u-p"}}),
    ],
    ids=["unbound", "to a Secret", "without UID", "of another node"],
)
async def test_a_node_gets_tokens_for_pods_it_runs_and_no_others(name: str, spec: Any) -> None:
    node = User(f"system:node:{name}", groups=("system:nodes",))
    with pytest.raises(Forbidden):
        await ask(call(user=node, **spec))
