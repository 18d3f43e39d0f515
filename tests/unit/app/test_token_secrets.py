"""A plain server fills Secrets that ask for a token, and gives nobody one unasked."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson

from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, Running, serving
from skerry.kit import log
from skerry.server.http.message import Peer, Request, Response
from skerry.server.user import User

ADMIN = Peer(user=User("admin", groups=("system:masters", "system:authenticated")))
BELOW = "/api/v1/namespaces/default"
NAME = "kubernetes.io/service-account.name"
UID = "kubernetes.io/service-account.uid"


async def ask(
    server: Running, method: str, path: str, body: Any = None, token: str = "", query: str = ""
) -> tuple[int, Any]:
    headers = {"content-type": "application/json"}
    if method == "PATCH":
        headers["content-type"] = "application/merge-patch+json"
    if token:
        headers["authorization"] = f"Bearer {token}"
    raw = b"" if body is None else orjson.dumps(body)
    request = Request(method, path, query, headers, raw, Peer() if token else ADMIN)
    answer = await server.api.engine.handle(request)
    assert isinstance(answer, Response)
    text = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return answer.status, orjson.loads(text)


def secret(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "annotations": annotations},
    }


def token_of(obj: dict[str, Any]) -> str:
    return base64.b64decode((obj.get("data") or {}).get("token", "")).decode()


async def whoami(server: Running, token: str) -> tuple[int, str]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    status, review = await ask(server, "POST", path, body, token)
    return status, review["status"]["userInfo"]["username"] if status == 201 else ""


async def test_a_secret_that_names_an_account_holds_its_token_for_as_long_as_it_is_there(
    tmp_path: Path,
) -> None:
    log.configure(verbosity=0, format="text")
    settings = ServerSettings(
        data_dir=tmp_path, port=0, store=StoreSettings(kind="memory"), controllers="none"
    )
    async with serving(settings, PLAIN_SERVER) as server:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        _, robot = await ask(server, "POST", f"{BELOW}/serviceaccounts", account)
        assert "secrets" not in robot
        uid = robot["metadata"]["uid"]
        secrets = f"{BELOW}/secrets"
        _, made = await ask(server, "POST", secrets, secret("s", **{NAME: "robot"}))
        assert sorted(made["data"]) == ["ca.crt", "namespace", "token"]
        assert made["metadata"]["annotations"] == {NAME: "robot", UID: uid}
        token = token_of(made)
        assert await whoami(server, token) == (201, "system:serviceaccount:default:robot")
        # Whoever takes it out gets another.
        _, changed = await ask(server, "PATCH", f"{secrets}/s", {"data": {"token": None}})
        assert (await whoami(server, token_of(changed)))[0] == 201
        # Nothing is filled for accounts that are not there or another, nor when only tried.
        for name, annotations in (("a", {NAME: "nobody"}), ("b", {NAME: "robot", UID: "other"})):
            _, empty = await ask(server, "POST", secrets, secret(name, **annotations))
            assert token_of(empty) == ""
        _, tried = await ask(
            server, "POST", secrets, secret("t", **{NAME: "robot"}), query="dryRun=All"
        )
        assert token_of(tried) == ""
        given = {**secret("g", **{NAME: "robot"}), "data": {"token": "bWluZQ=="}}
        _, kept = await ask(server, "POST", secrets, given)
        assert token_of(kept) == "mine"
        plain = {**secret("o", **{NAME: "robot"}), "type": "Opaque"}
        assert "data" not in (await ask(server, "POST", secrets, plain))[1]
        status, _ = await ask(server, "POST", secrets, secret("n"))
        assert status == 422
        # It ends with the Secret.
        assert (await ask(server, "DELETE", f"{secrets}/s"))[0] == 200
        await server.api.dispatcher.reached(await server.api.store.revision())
        assert (await whoami(server, token))[0] == 401
