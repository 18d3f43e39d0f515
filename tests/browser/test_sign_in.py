"""Signing in by a link, a token or an issuer: once, leaving no secret, from our page alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.kit.browser.aside import Aside, hub_aside
from tests.kit.browser.chromium import PATIENCE_MS
from tests.kit.browser.console import Console, Tab, tab
from tests.kit.browser.looks import problems

# Pages of other people: another site, and another port of the console's own host.
_ELSEWHERE = ("https://elsewhere.test/", "https://127.0.0.1:1/")
_POST = """(url) => fetch(url, {method: "POST", mode: "no-cors", credentials: "include",
  headers: {"Content-Type": "text/plain"}, body: '{"code": "x"}'}).then(({type}) => type, String)"""
_SOCKET = """(url) => new Promise((resolve) => {
  const socket = new WebSocket(url, "skerry.console.v1");
  socket.onopen = () => resolve("open");
  socket.onclose = () => resolve("closed");
})"""


def test_a_login_link_signs_in_once(browser: Browser, console: Console) -> None:
    code = console.code()
    with tab(browser, console) as first:
        first.open(f"login#code={code}").wait_for_url("**/console/fleet")
        assert not first.complaints
    with tab(browser, console) as again:
        page = again.open(f"login#code={code}")
        expect(page.get_by_role("alert")).to_contain_text("code")
        assert page.context.cookies() == []


@pytest.fixture(scope="module")
def aside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aside]:
    """Another hub, whose time can be moved."""
    with hub_aside(tmp_path_factory.mktemp("aside"), issuer=True) as started:
        yield started


@pytest.fixture
def somewhere(browser: Browser, aside: Aside) -> Iterator[Page]:
    """A tab of somebody whom the other hub does not know yet."""
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page
    context.close()


def test_who_signs_in_at_the_issuer_comes_back_to_the_link_they_followed(
    somewhere: Page, aside: Aside
) -> None:
    page = somewhere
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(f"{aside.url}/console/placements?q=web")
    page.get_by_role("button", name="Sign in with 127.0.0.1").click()
    page.get_by_role("button", name="Sign in as alice").click()
    page.wait_for_url("**/console/placements?q=web")
    expect(page.get_by_title("signed in as")).to_have_text("oidc:alice")
    cookies = {each["name"]: each for each in page.context.cookies()}
    # What bound the answer to this browser is gone; the session is as strict as any.
    assert cookies.keys() == {"__Host-skerry"}
    (cookie,) = cookies.values()
    assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
    assert aside.provider is not None
    assert "code_verifier" in aside.provider.forms[-1]
    page.go_back()
    assert "code=" not in page.url
    assert [each for each in complaints if "401" not in each and "WebSocket" not in each] == []


def test_an_answer_of_the_issuer_that_this_browser_did_not_ask_for_is_refused(
    somewhere: Page, aside: Aside
) -> None:
    page = somewhere
    page.goto(f"{aside.url}/console/login?code=stolen&state=forged")
    expect(page.get_by_role("alert")).to_contain_text("did not begin in this browser")
    expect(page).to_have_url(f"{aside.url}/console/login")
    assert page.context.cookies() == []


def test_a_refusal_of_the_issuer_is_shown_and_one_may_try_again(
    somewhere: Page, aside: Aside
) -> None:
    page = somewhere
    page.goto(f"{aside.url}/console/login")
    page.get_by_role("button", name="Sign in with 127.0.0.1").click()
    page.get_by_role("button", name="Sign in as", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("did not sign you in: access_denied")
    expect(page).to_have_url(f"{aside.url}/console/login")
    assert not problems(page)


def test_a_code_of_another_hub_is_refused(stranger: Tab, aside: Aside) -> None:
    page = stranger.open(f"login#code={aside.code()}")
    expect(page.get_by_role("alert")).to_contain_text("the code is not good")
    assert page.context.cookies() == []


def test_a_code_is_refused_when_its_minute_is_over(browser: Browser, aside: Aside) -> None:
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    early, late = aside.code(), aside.code()
    page.goto(f"{aside.url}/console/login#code={early}")
    page.wait_for_url("**/console/fleet")
    context.clear_cookies()
    aside.pass_time(timedelta(minutes=1))
    page.goto(f"{aside.url}/console/login#code={late}")
    expect(page.get_by_role("alert")).to_contain_text("is older than a minute")
    assert context.cookies() == []
    context.close()


def test_a_made_up_code_is_refused_in_a_sentence(stranger: Tab) -> None:
    page = stranger.open("login#code=" + "A" * 43)
    expect(page.get_by_role("alert")).to_contain_text("code")
    expect(page.get_by_label("Or paste a token of a ServiceAccount")).to_be_visible()


def test_the_code_leaves_the_address_bar_and_the_history(
    browser: Browser, console: Console
) -> None:
    with tab(browser, console) as somebody:
        page = somebody.open(f"login#code={console.code()}")
        page.wait_for_url("**/console/fleet")
        page.go_back()
        assert "code" not in page.url


def test_scripts_cannot_read_the_cookie(signed_in: Tab, cookies: list[Any]) -> None:
    (cookie,) = cookies
    assert cookie["name"] == "__Host-skerry"
    assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
    page = signed_in.open("fleet")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    assert cookie["value"] not in page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}])"
    )


@pytest.mark.parametrize("origin", _ELSEWHERE)
def test_pages_of_other_origins_reach_neither_session_nor_socket(
    browser: Browser, console: Console, cookies: list[Any], origin: str
) -> None:
    with tab(browser, console, cookies) as somebody:
        page = somebody.page
        answers = _elsewhere(page, origin, console)
        page.evaluate(_POST, f"{console.url}/console/session")
        # Some browsers do not even send it.
        assert set(answers) <= {403}
        socket = console.url.replace("https:", "wss:") + "/console/socket"
        assert page.evaluate(_SOCKET, socket) == "closed"


def _elsewhere(page: Page, origin: str, console: Console) -> list[int]:
    """Open a page of *origin*; return the list that the console's answers go to."""

    def empty(route: Route) -> None:
        route.fulfill(body="<title>elsewhere</title>", content_type="text/html")

    answers: list[int] = []
    page.route(f"{origin}**", empty)
    page.goto(origin)
    page.on(
        "response",
        lambda answer: (
            answers.append(answer.status) if answer.url.startswith(console.url) else None
        ),
    )
    return answers


def test_who_is_not_signed_in_comes_back_to_the_link_they_followed(
    browser: Browser, console: Console
) -> None:
    with tab(browser, console) as somebody:
        page = somebody.open("fleet?by=region&q=env%3Dprod")
        page.wait_for_url("**/console/login")
        somebody.open(f"login#code={console.code()}")
        page.wait_for_url("**/console/fleet?by=region&q=env%3Dprod")


def test_a_pasted_token_signs_in_and_is_kept_nowhere(browser: Browser, console: Console) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    console.apply("root", {**account, "metadata": {"name": "reader", "namespace": "default"}})
    token = console.kubectl("root", "create", "token", "reader", "-n", "default").strip()
    with tab(browser, console) as somebody:
        page = somebody.open("login")
        page.get_by_label("Or paste a token of a ServiceAccount").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/console/fleet")
        expect(page.get_by_text("system:serviceaccount:default:reader")).to_be_visible()
        assert token not in page.evaluate(
            "JSON.stringify([{...localStorage}, {...sessionStorage}])"
        )
