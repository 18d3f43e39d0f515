"""The console's listener as a browser meets it: the page, signing in, the socket, and refusals."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from skerry.app.hub import hub_flavor
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import StartError, serving
from tests.kit.server.browser import Browser, Refused
from tests.kit.server.console import (
    a_session_is_listed_and_ends_when_it_is_revoked,
    nobody_in_particular_gets_no_code,
    requests_of_other_sites_and_under_other_names_are_refused,
)
from tests.kit.server.hub import Hub, running_hub


def browser(hub: Hub) -> Browser:
    return Browser(hub.running.console)


async def a_code_signs_in_once_and_not_again(hub: Hub) -> None:
    made = await hub.ask("alice", "POST", "/skerry/console/codes")
    assert made.status == 201
    assert made.body["url"] == hub.running.console
    mine, theirs = browser(hub), browser(hub)
    page = await mine.fetch("POST", "/console/session", {"code": made.body["code"]})
    assert page.status == 204
    cookie = page.headers["set-cookie"]
    assert cookie.startswith("__Host-skerry=")
    assert cookie.endswith("; Secure; HttpOnly; SameSite=Strict; Path=/")
    assert (await mine.fetch("GET", "/console/session")).json["user"] == "alice"
    again = await theirs.fetch("POST", "/console/session", {"code": made.body["code"]})
    assert again.status == 401
    assert "used already" in again.json["message"]
    assert (await theirs.fetch("GET", "/console/session")).status == 401


async def the_page_is_public_and_nothing_of_another_origin_runs_in_it(hub: Hub) -> None:
    mine = browser(hub)
    first = await mine.fetch("GET", "/")
    assert (first.status, first.headers["location"]) == (302, "/console/fleet")
    for path in ("/console/fleet", "/console/placements/root:a/web", "/console/login"):
        page = await mine.fetch("GET", path)
        assert page.status == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "require-trusted-types-for 'script'" in page.headers["content-security-policy"]
        assert page.headers["cache-control"] == "no-store"
    assert (await mine.fetch("GET", "/api")).status == 404
    packed = await mine.fetch("GET", "/console/fleet", accept_encoding="gzip")
    body = packed.body
    if packed.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    assert body == (await mine.fetch("GET", "/console/fleet")).body


async def a_socket_needs_a_session_and_a_protocol_that_both_know(hub: Hub) -> None:
    mine = browser(hub)
    with pytest.raises(Refused) as refused:
        async with mine.tab():
            pass
    assert refused.value.status == 401
    await mine.sign_in(hub, "alice")
    with pytest.raises(Refused) as refused:
        async with mine.tab(protocol="skerry.console.v99"):
            pass
    assert refused.value.status == 400
    async with mine.tab() as tab:
        hello = (await tab.frame())["hello"]
        assert hello["protocol"] == 1
        assert hello["user"] == "alice"
        assert hello["store"] == hub.running.api.store.identity


async def a_pasted_token_signs_in_and_the_api_port_ignores_the_cookie(hub: Hub) -> None:
    mine = browser(hub)
    bad = await mine.fetch("POST", "/console/session", {"token": "nobody's"})
    assert bad.status == 401
    assert (await mine.fetch("POST", "/console/session", {"token": "bob-token"})).status == 204
    assert (await mine.fetch("GET", "/console/session")).json["user"] == "bob"
    whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    reply = await hub.ask("", "POST", f"/clusters/root{whoami}", {}, cookie=mine.cookie)
    assert reply.status in (401, 403)


async def signing_out_ends_the_session(hub: Hub) -> None:
    mine = browser(hub)
    await mine.sign_in(hub, "alice")
    cookie = mine.cookie
    page = await mine.fetch("DELETE", "/console/session")
    assert page.status == 204
    assert "Max-Age=0" in page.headers["set-cookie"]
    mine.cookie = cookie
    assert (await mine.fetch("GET", "/console/session")).status == 401


async def what_cannot_be_understood_is_answered_in_a_sentence(hub: Hub) -> None:
    mine = browser(hub)
    await mine.sign_in(hub, "alice")
    async with mine.tab() as tab:
        await tab.frame()
        for text, said in (
            ("{", "no JSON"),
            ("[]", "want an object"),
            ('{"id": -1, "sub": "fleet"}', "id: want"),
            ('{"id": 1}', "want one of the members"),
            ('{"id": 1, "sub": 5}', "sub: want"),
            ('{"id": 1, "sub": "nowhere"}', "no view is called 'nowhere'"),
            ('{"id": 1, "ask": "nothing", "with": []}', "with: want an object"),
            ('{"id": 1, "ask": "nothing"}', "no question is called 'nothing'"),
        ):
            tab.send_text(text)
            error = (await tab.frame())["error"]
            assert said in error["message"]
            assert error["code"] == 400


async def a_frame_too_large_to_read_ends_the_socket(hub: Hub) -> None:
    mine = browser(hub)
    await mine.sign_in(hub, "alice")
    async with mine.tab() as tab:
        await tab.frame()
        tab.send_text("x" * 300_000)
        assert await tab.frame() is None
        assert tab.closed == 1009


# A hub takes a second to start: what needs none of its own is asked of one after the other.
SESSIONS = (
    a_session_is_listed_and_ends_when_it_is_revoked,
    a_code_signs_in_once_and_not_again,
    a_pasted_token_signs_in_and_the_api_port_ignores_the_cookie,
    nobody_in_particular_gets_no_code,
    signing_out_ends_the_session,
)
REFUSALS = (
    the_page_is_public_and_nothing_of_another_origin_runs_in_it,
    requests_of_other_sites_and_under_other_names_are_refused,
    a_socket_needs_a_session_and_a_protocol_that_both_know,
    what_cannot_be_understood_is_answered_in_a_sentence,
    a_frame_too_large_to_read_ends_the_socket,
)


@pytest.mark.parametrize("behaviours", [SESSIONS, REFUSALS], ids=["sessions", "refusals"])
async def test_a_browser_meets_the_console(
    tmp_path: Path, behaviours: Sequence[Callable[[Hub], Awaitable[None]]]
) -> None:
    async with running_hub(tmp_path, console=True) as hub:
        for behaves in behaviours:
            await behaves(hub)


async def test_signing_in_and_looking_are_audited(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with running_hub(tmp_path, console=True, audit_log=log) as hub:
        mine = browser(hub)
        await mine.sign_in(hub, "alice")
        async with mine.tab() as tab:
            await tab.frame()
            await tab.ask(1, "nothing")
    events = log.read_text()
    for path in ("/skerry/console/codes", "/console/session", "/console/questions/nothing"):
        assert f'"requestURI":"{path}"' in events


async def test_a_port_that_is_taken_is_said_in_a_sentence(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "a", console=True) as hub:
        port = int(hub.running.console.rpartition(":")[2])
        settings = ServerSettings(
            data_dir=tmp_path / "b",
            port=0,
            store=StoreSettings(kind="memory"),
            controllers="none",
            workers=0,
            console_port=port,
        )
        with pytest.raises(StartError, match="--console-port names another"):
            async with serving(settings, hub_flavor()):
                pass
        # Nobody asked for that port in particular: the hub must not suffer for its console.
        async with serving(replace(settings, console_optional=True), hub_flavor()) as running:
            assert running.console == ""
