"""Tokens of a hub's ServiceAccounts: whom they are from and for, and Secrets that hold them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.kit.server.hub import CONFIG_MAPS, Hub, HubPlace, in_hub
from tests.kit.server.tenants import ACCOUNTS, home, robot

ISSUER = "https://kcp.default.svc"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


async def issued(hub: Hub, where: str, *audiences: str) -> str:
    spec: dict[str, Any] = {"expirationSeconds": 3600}
    if audiences:
        spec["audiences"] = list(audiences)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    reply = await hub.create(where, f"{ACCOUNTS}/robot/token", asked, "alice")
    return str(reply["status"]["token"])


@in_hub
async def test_a_hub_issues_tokens_as_kcp_does_and_accepts_those_meant_for_it(hub: Hub) -> None:
    mine = await home(hub, "alice")
    await robot(hub, mine, "alice")
    plain = await issued(hub, mine)
    claims = jwt.decode(plain, options={"verify_signature": False})
    assert (claims["iss"], claims["aud"]) == (ISSUER, [ISSUER])
    for audiences, wanted in (((), 200), ((ISSUER,), 200), (("vault", ISSUER), 200),
                              (("vault",), 401), (("https://kcp.default.svc/",), 401)):  # fmt: skip
        token = await issued(hub, mine, *audiences)
        reply = await hub.ask(token, "GET", f"/clusters/{mine}{CONFIG_MAPS}")
        assert reply.status == wanted, (audiences, reply.body)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
              "spec": {"token": plain, "audiences": [ISSUER]}}  # fmt: skip
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    result = (await hub.create(mine, path, review))["status"]
    assert (result["authenticated"], result["audiences"]) == (True, [ISSUER])


@in_hub
async def test_a_token_secret_that_is_asked_for_is_filled(hub: Hub) -> None:
    mine = await home(hub, "alice")
    await robot(hub, mine, "alice")
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
              "metadata": {"name": "mine", "annotations": {
                  "kubernetes.io/service-account.name": "robot"}}}  # fmt: skip
    made = await hub.create(mine, "/api/v1/namespaces/default/secrets", secret, "alice")
    assert sorted(made["data"]) == ["ca.crt", "namespace", "token"]
    token = base64.b64decode(made["data"]["token"]).decode()
    assert (await hub.ask(token, "GET", f"/clusters/{mine}{CONFIG_MAPS}")).status == 200
    # It ends with the Secret.
    path = f"/clusters/{mine}/api/v1/namespaces/default/secrets/mine"
    assert (await hub.ask("alice", "DELETE", path)).status == 200
    await hub.gone(mine, "/api/v1/namespaces/default/secrets/mine")
    assert (await hub.ask(token, "GET", f"/clusters/{mine}{CONFIG_MAPS}")).status == 401
