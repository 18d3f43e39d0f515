"""A terminal in the page onto a pod at an edge: typed into, resized, refused, ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.browser.axe import violations
from tests.kit.browser.console import Tab, sign_in, tab
from tests.kit.browser.tunnel import (
    EXEC,
    INVENTORY,
    TunnelConsole,
    started,
    terminal,
    tunnel_console,
)

NOTICE = "main .notice[role=alert]"
FORWARD = "kubectl ws root:imw\nskerry port-forward florin web :8000 -n shop"


@pytest.fixture(scope="module")
def reaching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TunnelConsole]:
    with tunnel_console(tmp_path_factory.mktemp("exec")) as found:
        yield found


@pytest.fixture(scope="module")
def own_cookies(browser: Browser, reaching: TunnelConsole) -> list[Any]:
    return sign_in(browser, reaching)


@pytest.fixture
def operator(browser: Browser, reaching: TunnelConsole, own_cookies: list[Any]) -> Iterator[Tab]:
    """A tab of the administrator; it may neither complain nor ask anybody else."""
    with tab(browser, reaching, own_cookies) as opened:
        yield opened
        assert not opened.complaints
        assert not opened.foreign()


def says(page: Page, sentence: str | re.Pattern[str]) -> None:
    """Wait until the page says *sentence* of its session."""
    expect(page.locator("[data-session]")).to_have_text(sentence)


def recorded(
    page: Page, console: TunnelConsole, path: str, stage: str = "ResponseComplete", count: int = 1
) -> dict[str, Any]:
    """Return the last of *count* events about *path*; the log is written a moment after the page.

    The page's own loop goes on meanwhile.
    """
    for _ in range(100):
        if len(found := console.place.audited(path, stage)) >= count:
            return found[-1]
        page.wait_for_timeout(100)
    raise AssertionError(f"the audit log has {len(found)} {stage} of {path}, want {count}")


def test_a_command_is_typed_its_output_seen_and_its_exit_code_said_and_audited(
    operator: Tab, reaching: TunnelConsole
) -> None:
    page = operator.open(EXEC)
    rows = started(page)
    page.keyboard.type("echo $((6 * 7))-here\n")
    expect(rows).to_contain_text("42-here")
    page.keyboard.type("exit 3\n")
    says(page, "The command has ended with exit code 3.")
    noted = recorded(page, reaching, "/console/programs/exec")
    assert (noted["user"]["username"], noted["verb"]) == ("kcp-admin", "create")
    for stage in ("ResponseStarted", "ResponseComplete"):
        session = recorded(page, reaching, "/pods/web/exec", stage)["annotations"]
        assert session["edge.kcp.io/tunnel-edge"] == "root:imw:florin"
        assert session["edge.kcp.io/tunnel-pod"] == "web"
        assert session["edge.kcp.io/tunnel-command"] == '["sh"]'
    assert int(session["edge.kcp.io/tunnel-received-bytes"]) > 0


def test_a_link_restores_the_choice_and_begins_nothing(
    operator: Tab, reaching: TunnelConsole
) -> None:
    before = len(reaching.place.audited("/console/programs/exec"))
    page = operator.open(f"{EXEC}&container=main&command=echo+'a+b'")
    expect(page.get_by_label("Container")).to_have_value("main")
    expect(page.get_by_role("textbox", name="Command")).to_have_value("echo 'a b'")
    expect(page.get_by_label("command that forwards ports")).to_have_text(FORWARD)
    expect(page.locator("[data-session]")).to_have_count(0)
    assert len(reaching.place.audited("/console/programs/exec")) == before
    page.get_by_role("button", name="Start", exact=True).click()
    says(page, "The command has ended with exit code 0.")
    expect(terminal(page)).to_contain_text("a b")
    page.get_by_role("button", name="New session").click()
    recorded(page, reaching, "/console/programs/exec", count=before + 2)
    says(page, "The command has ended with exit code 0.")


def test_the_command_knows_the_size_and_that_it_changed(operator: Tab) -> None:
    page = operator.open(EXEC)
    rows = started(page)
    page.keyboard.type("trap 'stty size' WINCH; stty size\n")
    expect(rows).to_contain_text(re.compile(r"\d+ 1\d\d"))
    page.set_viewport_size({"width": 500, "height": 800})
    page.keyboard.type("\n")
    expect(rows).to_contain_text(re.compile(r"\d+ [456]\d\b"))


def test_control_c_and_d_are_the_commands(operator: Tab) -> None:
    page = operator.open(EXEC)
    rows = started(page)
    page.keyboard.type("sh -c 'echo begun-$$; exec sleep 600'\n")
    # A shell that has not started it yet would take the key for its own.
    expect(rows).to_contain_text(re.compile(r"begun-\d"))
    page.keyboard.press("Control+c")
    expect(rows).to_contain_text(re.compile(r"\^C"))
    page.keyboard.type("echo back-$((1 + 1))\n")
    expect(rows).to_contain_text("back-2")
    page.keyboard.press("Control+d")
    says(page, re.compile("exit code"))


def test_the_keyboard_alone_gets_in_and_out_and_a_reader_can_be_asked_for(operator: Tab) -> None:
    page = operator.open(EXEC)
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    box = page.get_by_role("textbox", name="Terminal input")
    expect(box).to_be_focused()
    expect(terminal(page)).to_contain_text("#")
    for key in ("Tab", "Escape", "Shift+Tab", "Control+k"):
        page.keyboard.press(key)
        expect(box).to_be_focused()
    page.keyboard.press("Control+Shift+Enter")
    leave = page.get_by_role("button", name="End the session")
    expect(leave).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator(".xterm-accessibility")).to_have_count(1)
    assert not violations(page)
    leave.press("Enter")
    says(page, "The session has ended.")
    # What has ended holds no key.
    box.focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="New session")).to_be_focused()


def test_hostile_output_is_only_text(operator: Tab) -> None:
    page = operator.open(EXEC)
    title = page.title()
    rows = started(page)
    page.evaluate("() => { window.open = () => { throw new Error('a window was opened'); }; }")
    page.evaluate(
        "() => { window.copied = []; navigator.clipboard.writeText = async (t) => copied.push(t); }"
    )
    hostile = (
        r"\033]0;owned\007\033]2;owned\007\033]52;c;b3duZWQ=\007"
        r"\033]8;;javascript:alert(1)\007click\033]8;;\007<img src=x onerror=alert(1)>"
        r"\033[38;2;1;2;3mcolour\033[0m\033[21t\n"
    )
    page.keyboard.type(f"printf '{hostile}'\n")
    expect(rows).to_contain_text("click<img src=x onerror=alert(1)>colour")
    rows.get_by_text("click", exact=False).last.click(force=True)
    assert page.title() == title
    assert page.evaluate("() => window.copied") == []
    expect(rows.locator("img")).to_have_count(0)
    page.keyboard.type(
        "head -c 8000000 /dev/zero | tr '\\0' x | fold -w 70; echo the-$((1 + 1))nd\n"
    )
    expect(rows).to_contain_text("the-2nd", timeout=60_000)
    operator.is_live()


def somebody(console: TunnelConsole, name: str, *resources: str) -> str:
    """Make an account that sees edges and has rights to *resources* of them; return its token."""
    names = (name, "-n", "default")
    console.kubectl(INVENTORY, "create", "serviceaccount", *names)
    kinds = {"see": "synctargets.workload.kcp.io", **{each: each for each in resources}}
    for word, resource in kinds.items():
        role = f"{name}-{word.replace('/', '-').partition('.')[0]}"
        rule = ("--verb=*", f"--resource={resource}")
        if word == "see":
            console.kubectl(INVENTORY, "create", "clusterrole", role, *rule)
        else:
            rules = [{"apiGroups": ["edge.kcp.io"], "resources": [resource], "verbs": ["*"]}]
            kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
            console.apply(INVENTORY, {**kind, "metadata": {"name": role}, "rules": rules})
        given = (f"--clusterrole={role}", f"--serviceaccount=default:{name}")
        console.kubectl(INVENTORY, "create", "clusterrolebinding", role, *given)
    return console.kubectl(INVENTORY, "create", "token", *names).strip()


@contextmanager
def signed_in_by(browser: Browser, console: TunnelConsole, token: str) -> Iterator[Tab]:
    with tab(browser, console) as opened:
        page = opened.open("login")
        page.get_by_label("Or paste a token of a ServiceAccount").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/console/fleet")
        yield opened
        assert not opened.complaints


def test_who_lacks_the_right_sees_which(browser: Browser, reaching: TunnelConsole) -> None:
    token = somebody(reaching, "guest")
    with signed_in_by(browser, reaching, token) as guest:
        page = guest.open(EXEC)
        page.get_by_role("button", name="Start", exact=True).click()
        notice = page.locator(NOTICE)
        expect(notice.get_by_role("heading", name="You may not do this")).to_be_visible()
        expect(notice).to_contain_text('cannot create resource "edges/exec"')
        assert not violations(page)


def test_a_right_that_is_taken_away_ends_the_session(
    browser: Browser, reaching: TunnelConsole
) -> None:
    token = somebody(reaching, "helper", "edges/exec")
    with signed_in_by(browser, reaching, token) as helper:
        page = helper.open(EXEC)
        started(page)
        reaching.kubectl(INVENTORY, "delete", "clusterrolebinding", "helper-edges-exec")
        says(page, "The session has ended.")
        expect(page.locator(NOTICE)).to_be_visible()


def test_signing_out_elsewhere_ends_the_session(browser: Browser, reaching: TunnelConsole) -> None:
    with tab(browser, reaching, sign_in(browser, reaching)) as elsewhere:
        page = elsewhere.open(EXEC)
        started(page)
        page.evaluate(
            """fetch("/console/session", {method: "DELETE", headers: {"X-Skerry-Console": "1"}})"""
        )
        says(page, "The session has ended.")
        expect(page.locator(".banner")).to_contain_text("Your session has ended")


def test_a_console_in_a_process_of_its_own_has_terminals_too(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("apart")
    with (
        tunnel_console(folder, "--console-process") as apart,
        tab(browser, apart, sign_in(browser, apart)) as opened,
    ):
        page = opened.open(EXEC)
        started(page)
        page.keyboard.type("exit 4\n")
        says(page, "The command has ended with exit code 4.")
        assert not opened.complaints
        noted = recorded(page, apart, "/pods/web/exec")
        assert noted["user"]["username"] == "kcp-admin"
