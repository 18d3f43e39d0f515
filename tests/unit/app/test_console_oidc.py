"""Signing in to the console at an issuer: a real one on loopback, and all that may be bad."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from skerry.app.hub import hub_flavor
from skerry.app.settings import OidcSettings, ServerSettings, StoreSettings
from skerry.app.standalone import StartError, serving
from skerry.server.http.message import Response
from tests.kit.server.browser import Browser, Page
from tests.kit.server.edges import MovedClock
from tests.kit.server.hub import Hub, running_hub
from tests.kit.server.oidc_provider import Provider, listening

SESSION, OIDC = "/console/session", "/console/oidc"
DISCOVERY = "/.well-known/openid-configuration"


@dataclass
class Person:
    """Somebody's browser: it holds a session's cookie and that of a sign-in, and follows a link."""

    url: str
    provider: Provider
    cookies: dict[str, str] = field(default_factory=dict)

    async def fetch(self, method: str, path: str, document: Any = None, **headers: str) -> Page:
        kept = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        browser = Browser(self.url, kept)
        page = await browser.fetch(method, path, document, **headers)
        for each in page.cookies:
            name, _, rest = each.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return page

    async def begin(self) -> dict[str, str]:
        """Press the button; return what the issuer is asked."""
        page = await self.fetch("POST", OIDC)
        assert page.status == 200, page.body
        where = urlsplit(page.json["url"])
        assert f"{where.scheme}://{where.netloc}{where.path}" == f"{self.provider.url}/authorize"
        return {name: value for name, (value,) in parse_qs(where.query).items()}

    async def finish(self, state: str, code: str, **headers: str) -> Page:
        return await self.fetch("POST", SESSION, {"code": code, "state": state}, **headers)

    async def sign_in(self) -> Page:
        asked = await self.begin()
        return await self.finish(asked["state"], self.provider.code(asked))

    async def name(self) -> str:
        page = await self.fetch("GET", SESSION)
        return str(page.json["user"]) if page.status == 200 else ""


@dataclass
class World:
    hub: Hub
    provider: Provider
    clock: MovedClock

    def person(self) -> Person:
        return Person(self.hub.running.console, self.provider)


@contextlib.asynccontextmanager
async def world(folder: Path, *, apart: bool = False) -> AsyncIterator[World]:
    clock = MovedClock()
    async with listening(folder) as (provider, authority):
        oidc = OidcSettings(provider.url, ("skerry",), username_prefix="oidc:")
        async with running_hub(
            folder / "hub",
            console=True,
            console_process=apart,
            clock=None if apart else clock,
            issuer=(oidc, authority),
        ) as hub:
            yield World(hub, provider, clock)


async def who_signs_in_at_the_issuer_has_a_session_as_they_are_named_here(w: World) -> None:
    mine = w.person()
    page = await mine.fetch("GET", "/console/login")
    assert b'<meta name="skerry-oidc" content="127.0.0.1">' in page.body
    asked = await mine.begin()
    assert asked["redirect_uri"] == f"{mine.url}/console/login"
    assert asked["code_challenge_method"] == "S256"
    begun = mine.cookies["__Host-skerry-oidc"]
    page = await mine.finish(asked["state"], w.provider.code(asked))
    assert page.status == 204
    for each in page.cookies:
        assert each.endswith("; Secure; HttpOnly; SameSite=Strict; Path=/")
    assert mine.cookies["__Host-skerry-oidc"] == ""
    assert await mine.name() == "oidc:alice"
    assert "skerry-oidc" not in w.provider.forms[-1]
    assert begun not in str(w.provider.forms)


async def a_state_that_is_forged_or_of_another_browser_is_refused(w: World) -> None:
    mine, theirs = w.person(), w.person()
    asked, other = await mine.begin(), await theirs.begin()
    code = w.provider.code(asked)
    for state in ("x", other["state"], asked["state"][:-1], "é" * 400_00):
        page = await mine.finish(state, code)
        assert page.status in (400, 401, 413), page.body
    # An attacker's code and state in a browser that never began, or began another.
    assert (await w.person().finish(asked["state"], code)).status == 401
    assert (await theirs.finish(asked["state"], code)).status == 401
    forged = Person(mine.url, w.provider, {"__Host-skerry-oidc": "A" * 300})
    assert (await forged.finish(asked["state"], code)).status == 401
    assert w.provider.forms == []
    assert (await mine.finish(asked["state"], code)).status == 204


async def a_code_and_a_sign_in_are_good_once(w: World) -> None:
    mine = w.person()
    asked = await mine.begin()
    code, kept = w.provider.code(asked), dict(mine.cookies)
    assert (await mine.finish(asked["state"], code)).status == 204
    mine.cookies = kept
    again = await mine.finish(asked["state"], w.provider.code(asked))
    assert (again.status, "sign in again" in again.json["message"]) == (401, True)
    # A code that was used already, in a sign-in of its own.
    asked = await mine.begin()
    spent = await mine.finish(asked["state"], code)
    assert (spent.status, "invalid_grant" in spent.json["message"]) == (401, True)
    assert await mine.name() == ""


async def a_token_of_another_sign_in_or_audience_begins_no_session(w: World) -> None:
    for claims in (
        {"nonce": "other"},
        {"nonce": ...},
        {"aud": "elsewhere"},
        {"exp": 1_000_000_000},
    ):
        w.provider.claims = claims
        mine = w.person()
        assert (await mine.sign_in()).status == 401
        assert await mine.name() == ""
    w.provider.claims = {}


async def other_origins_neither_begin_nor_finish(w: World) -> None:
    mine = w.person()
    asked = await mine.begin()
    code = w.provider.code(asked)
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": ""},
        {"sec_fetch_site": "cross-site"},
    ):
        assert (await mine.fetch("POST", OIDC, **headers)).status == 403
        assert (await mine.finish(asked["state"], code, **headers)).status == 403
    assert (await mine.fetch("POST", OIDC, x_skerry_console="")).status == 400
    assert (await mine.fetch("POST", OIDC, host="evil.example")).status == 403
    assert (await mine.fetch("GET", OIDC)).status == 405
    both = await mine.fetch("POST", SESSION, {"token": "t", "state": asked["state"]})
    assert both.status == 400


async def an_issuer_that_is_away_or_hostile_is_said_to_be_so(w: World) -> None:
    mine = w.person()
    asked = await mine.begin()
    for answer in (
        Response(500, b"{}"),
        Response(302, b"", headers=(("Location", "https://evil.example"),)),
        Response(200, b"no json"),
        Response(200, b"[]"),
        Response(200, b"x" * (2 << 20)),
    ):
        w.provider.answers = {"/token": answer}
        page = await mine.finish(asked["state"], w.provider.code(asked))
        assert page.status == 503
        assert "127.0.0.1 cannot be asked" in page.json["message"]
        asked = await mine.begin()
    w.provider.answers = {}
    assert (await mine.sign_in()).status == 204


async def a_session_goes_on_with_the_next_token_and_ends_when_there_is_none(w: World) -> None:
    w.provider.refreshes = True
    w.provider.claims = {"exp": int(w.clock.now().timestamp()) + 300}
    mine = w.person()
    assert (await mine.sign_in()).status == 204
    w.clock.ahead += timedelta(minutes=4)
    w.provider.claims = {"exp": int(w.clock.now().timestamp()) + 300}
    assert await mine.name() == "oidc:alice"
    assert [each["grant_type"] for each in w.provider.forms][-1] == "refresh_token"
    # While the issuer is away the token at hand is good until it ends.
    w.clock.ahead += timedelta(minutes=4)
    w.provider.answers = {"/token": Response(500, b"{}")}
    assert await mine.name() == "oidc:alice"
    w.provider.answers = {}
    w.provider.refreshing = {}
    w.clock.ahead += timedelta(seconds=20)
    assert await mine.name() == ""
    w.provider.claims, w.provider.refreshes = {}, False


async def a_session_without_a_refresh_token_ends_with_its_token(w: World) -> None:
    w.provider.claims = {"exp": int(w.clock.now().timestamp()) + 300}
    mine = w.person()
    assert (await mine.sign_in()).status == 204
    w.clock.ahead += timedelta(minutes=6)
    assert await mine.name() == ""
    w.provider.claims = {}


STORIES: tuple[Callable[[World], Awaitable[None]], ...] = (
    who_signs_in_at_the_issuer_has_a_session_as_they_are_named_here,
    a_state_that_is_forged_or_of_another_browser_is_refused,
    a_code_and_a_sign_in_are_good_once,
    a_token_of_another_sign_in_or_audience_begins_no_session,
    other_origins_neither_begin_nor_finish,
    an_issuer_that_is_away_or_hostile_is_said_to_be_so,
    a_session_goes_on_with_the_next_token_and_ends_when_there_is_none,
    a_session_without_a_refresh_token_ends_with_its_token,
)


async def test_signing_in_at_an_issuer(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        for story in STORIES:
            w.provider.forms.clear()
            await story(w)


async def test_a_sign_in_lasts_ten_minutes(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        mine = w.person()
        asked = await mine.begin()
        w.clock.ahead += timedelta(minutes=10)
        assert (await mine.finish(asked["state"], w.provider.code(asked))).status == 401


async def test_a_renewed_session_outlives_the_hub(tmp_path: Path) -> None:
    async with listening(tmp_path) as (provider, authority):
        provider.refreshes = True
        oidc = OidcSettings(provider.url, ("skerry",), username_prefix="oidc:")
        clock, cookies = MovedClock(), dict[str, str]()
        provider.claims = {"exp": int(clock.now().timestamp()) + 300}
        for turn in range(2):
            async with running_hub(
                tmp_path / "hub", console=True, clock=clock, issuer=(oidc, authority)
            ) as hub:
                mine = Person(hub.running.console, provider, cookies)
                if not turn:
                    assert (await mine.sign_in()).status == 204
                clock.ahead += timedelta(minutes=4)
                provider.claims = {"exp": int(clock.now().timestamp()) + 300}
                # Each token renews once: what is kept is the last.
                assert await mine.name() == "oidc:alice"
                cookies = mine.cookies


async def test_people_sign_in_to_a_console_in_a_process_of_its_own(tmp_path: Path) -> None:
    async with world(tmp_path, apart=True) as w:
        mine = w.person()
        assert (await mine.sign_in()).status == 204
        assert await mine.name() == "oidc:alice"
        asked = await mine.begin()
        assert (await w.person().finish(asked["state"], w.provider.code(asked))).status == 401


async def test_a_hub_without_an_issuer_says_so(tmp_path: Path) -> None:
    async with running_hub(tmp_path, console=True) as hub:
        mine = Browser(hub.running.console)
        page = await mine.fetch("POST", OIDC)
        assert (page.status, "--oidc-issuer-url" in page.json["message"]) == (404, True)
        page = await mine.fetch("POST", SESSION, {"code": "x", "state": "y"})
        assert page.status == 404


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("content", ["", "x" * 5000])
async def test_a_secret_that_is_none_stops_the_start(
    tmp_path: Path, apart: bool, content: str
) -> None:
    (tmp_path / "secret").write_text(content)
    settings = ServerSettings(
        data_dir=tmp_path / "data",
        port=0,
        store=StoreSettings(kind="memory"),
        oidc=OidcSettings("https://login.example", ("skerry",)),
        console_port=0,
        console_process=apart,
        console_oidc_secret_file=tmp_path / "secret",
        controllers="none",
    )
    with pytest.raises(StartError, match="--console-oidc-secret-file"):
        async with serving(settings, hub_flavor()):
            pass
