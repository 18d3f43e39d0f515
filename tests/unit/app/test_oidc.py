"""People come in by ID tokens of a real issuer, over TLS on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skerry.app.hub import hub_flavor
from skerry.app.oidc import build_oidc
from skerry.app.settings import OidcSettings, ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, Running, ServerFlavor, StartError, serving
from skerry.kit.clock import SystemClock
from skerry.logic.machinery.oidc import OidcError
from skerry.server.http.message import Peer, Request, Response
from skerry.server.security.pki import open_pki
from skerry.server.user import User
from tests.kit.server.oidc_provider import Provider, listening

ADMIN = Peer(user=User("admin", groups=("system:masters",)))
RBAC = "rbac.authorization.k8s.io"


@contextlib.asynccontextmanager
async def serving_people(
    folder: Path, issuer: Provider, authority: Path, kind: ServerFlavor = PLAIN_SERVER
) -> AsyncIterator[Running]:
    oidc = OidcSettings(
        issuer.url, ("skerry",), username_prefix="oidc:", groups_claim="groups", groups_prefix="g:"
    )
    settings = ServerSettings(
        data_dir=folder / "data",
        port=0,
        store=StoreSettings(kind="memory"),
        oidc=oidc,
        oidc_ca_file=authority,
        controllers="none",
    )
    async with serving(settings, kind) as running:
        yield running


async def ask(
    running: Running, method: str, path: str, token: str = "", obj: Any = None
) -> tuple[int, Any]:
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    body = b"" if obj is None else json.dumps(obj).encode()
    peer = Peer() if token else ADMIN
    answer = await running.api.engine.handle(Request(method, path, "", headers, body, peer))
    assert isinstance(answer, Response)
    raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return answer.status, json.loads(raw)


def granted(kind: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name.replace(":", "-")},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": RBAC, "kind": kind, "name": name}],
    }


def whoami(token: str) -> dict[str, Any]:
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }


async def test_people_are_users_and_groups_of_a_plain_server(tmp_path: Path) -> None:
    async with (
        listening(tmp_path) as (issuer, authority),
        serving_people(tmp_path, issuer, authority) as running,
    ):
        token = issuer.token(groups=["ops"])
        reviews = "/apis/authentication.k8s.io/v1"
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        code, said = await ask(running, "POST", f"{reviews}/selfsubjectreviews", token, review)
        assert code == 201
        user = said["status"]["userInfo"]
        assert user["username"] == "oidc:alice"
        assert user["groups"] == ["g:ops", "system:authenticated"]
        assert (await ask(running, "GET", "/api/v1/secrets", token))[0] == 403
        bindings = f"/apis/{RBAC}/v1/clusterrolebindings"
        assert (await ask(running, "POST", bindings, obj=granted("Group", "g:ops")))[0] == 201
        assert (await ask(running, "GET", "/api/v1/secrets", token))[0] == 200
        # Others may ask the server whom a token stands for.
        _, result = await ask(running, "POST", f"{reviews}/tokenreviews", obj=whoami(token))
        assert result["status"]["user"]["username"] == "oidc:alice"
        expired = issuer.token(exp=1_000_000_000)
        _, result = await ask(running, "POST", f"{reviews}/tokenreviews", obj=whoami(expired))
        assert not result["status"]["authenticated"]
        for bad in (
            expired,
            issuer.token(aud="elsewhere"),
            issuer.token(iss="https://elsewhere.example"),
            issuer.token()[:-6] + "AAAAAA",
        ):
            assert (await ask(running, "GET", "/version", bad))[0] == 401
        # With a prefix this is a group like any other.
        masters = issuer.token(sub="bob", groups=["system:masters"])
        assert (await ask(running, "GET", "/api/v1/secrets", masters))[0] == 403


async def test_people_are_the_same_in_every_workspace_of_a_hub(tmp_path: Path) -> None:
    async with (
        listening(tmp_path) as (issuer, authority),
        serving_people(tmp_path, issuer, authority, hub_flavor()) as running,
    ):
        token = issuer.token()
        workspaces = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces"
        made = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
                "metadata": {"name": "hers"}}  # fmt: skip
        code, workspace = await ask(running, "POST", workspaces, obj=made)
        assert code == 201
        inside = f"/clusters/{workspace['spec']['cluster']}"
        assert (await ask(running, "GET", f"{inside}/api/v1/secrets", token))[0] == 403
        bindings = f"{inside}/apis/{RBAC}/v1/clusterrolebindings"
        binding = granted("User", "oidc:alice")
        assert (await ask(running, "POST", bindings, obj=binding))[0] == 201
        assert (await ask(running, "GET", f"{inside}/api/v1/secrets", token))[0] == 200
        assert (await ask(running, "GET", workspaces, token))[0] == 200
        other = issuer.token(sub="bob")
        assert (await ask(running, "GET", f"{inside}/api/v1/secrets", other))[0] == 403


async def test_a_dead_issuer_stalls_nobody_else_and_does_not_hold_up_the_start(
    tmp_path: Path,
) -> None:
    async with listening(tmp_path) as (issuer, authority):
        # Connections are made, and nobody ever says a word on them.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            issuer.url = f"https://127.0.0.1:{silent.getsockname()[1]}"
            await _asked_meanwhile(tmp_path, issuer, authority)


async def _asked_meanwhile(tmp_path: Path, issuer: Provider, authority: Path) -> None:
    async with serving_people(tmp_path, issuer, authority) as running:
        waiting = [
            asyncio.ensure_future(ask(running, "GET", "/version", issuer.token(jti=str(n))))
            for n in range(20)
        ]
        # Everybody else is answered while they wait.
        for _ in range(50):
            assert (await ask(running, "GET", "/api/v1/namespaces/default"))[0] == 200
        assert not any(each.done() for each in waiting)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def fetched(issuer: Provider, authority: Path | None) -> str:
    """Return why the keys of *issuer* cannot be had; empty when they can."""
    settings = OidcSettings(issuer.url, ("skerry",))
    _, keys = build_oidc(settings, authority, SystemClock())
    try:
        await keys._read()
    except OidcError as error:
        return str(error)
    return ""


async def test_only_an_issuer_that_is_vouched_for_and_says_little_is_believed(
    tmp_path: Path,
) -> None:
    discovery = "/.well-known/openid-configuration"
    async with listening(tmp_path) as (issuer, authority):
        assert await fetched(issuer, authority) == ""
        assert "certificate verify failed" in await fetched(issuer, None)
        other = open_pki(tmp_path / "other", ["127.0.0.1"]).directory / "ca.crt"
        assert "certificate verify failed" in await fetched(issuer, other)
        for answer, wanted in (
            (Response(500, b"{}"), "status 500"),
            (Response(302, b"", headers=(("Location", f"{issuer.url}/x"),)), "status 302"),
            (Response(body=b"x" * (2 << 20)), "more than 1048576 bytes"),
            (Response(body=b"no json"), "is no JSON"),
        ):
            issuer.answers = {discovery: answer}
            assert wanted in await fetched(issuer, authority)
        issuer.answers = {}
        issuer.url = issuer.url.replace("127.0.0.1", "localhost")
        assert await fetched(issuer, authority) == ""


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"issuer_url": "http://x"}, "--oidc-issuer-url"),
        ({"signing_algs": ("HS256",)}, "--oidc-signing-algs"),
    ],
)
async def test_settings_that_make_no_sense_stop_the_start(
    tmp_path: Path, changes: dict[str, Any], wanted: str
) -> None:
    oidc = replace(OidcSettings("https://login.example", ("skerry",)), **changes)
    settings = ServerSettings(
        data_dir=tmp_path, port=0, store=StoreSettings(kind="memory"), oidc=oidc
    )
    with pytest.raises(StartError, match=wanted):
        async with serving(settings, PLAIN_SERVER):
            pass
    empty = tmp_path / "empty"
    empty.write_text("")
    with pytest.raises(OidcError, match="--oidc-ca-file"):
        build_oidc(OidcSettings("https://login.example", ("skerry",)), empty, SystemClock())
