"""The console through this machine: the hub is checked, and no other page or name gets through."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from skerry.app.console_proxy import ConsoleProxy, ProxyRefusal, Target, rewritten
from tests.kit.server.browser import Browser
from tests.kit.server.hub import running_hub

TARGET = Target("https://hub.example:8443", ssl.create_default_context())
OWN = "127.0.0.1:9000"


def head(*lines: str) -> bytes:
    return "\r\n".join(["GET /console/fleet HTTP/1.1", *lines]).encode()


def test_a_request_is_rewritten_to_the_hubs_names_and_ends_its_connection() -> None:
    sent = rewritten(
        head(f"Host: {OWN}", f"Origin: http://{OWN}", "Connection: keep-alive", "Cookie: a=b"),
        OWN,
        TARGET,
    )
    assert sent.decode().split("\r\n") == [
        "GET /console/fleet HTTP/1.1",
        "Host: hub.example:8443",
        "Origin: https://hub.example:8443",
        "Cookie: a=b",
        "Connection: close",
        "",
        "",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ("Host: evil.example:9000",),
        ("Host: localhost.evil:9000",),
        (f"Host: {OWN}", "Origin: https://evil.example"),
        (f"Host: {OWN}", "Origin: null"),
        (f"Host: {OWN}", "no colon"),
        ("Accept: */*",),
    ],
)
def test_other_names_and_other_pages_are_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(ProxyRefusal):
        rewritten(head(*lines), OWN, TARGET)


async def test_a_browser_signs_in_and_stays_live_through_the_proxy(tmp_path: Path) -> None:
    async with running_hub(tmp_path, console=True) as hub:
        authority = (tmp_path / "pki" / "ca.crt").read_text()
        target = Target(hub.running.console, ssl.create_default_context(cadata=authority))
        async with ConsoleProxy(target).listening() as url:
            mine = Browser(url)
            assert (await mine.sign_in(hub, "alice")).status == 204
            assert (await mine.fetch("GET", "/console/session")).json["user"] == "alice"
            foreign = await mine.fetch("GET", "/console/fleet", host="evil.example")
            assert foreign.status == 403
            async with mine.tab() as tab:
                assert (await tab.frame())["hello"]["user"] == "alice"
        stranger = Target(hub.running.console, ssl.create_default_context())
        async with ConsoleProxy(stranger).listening() as url:
            away = await Browser(url).fetch("GET", "/console/fleet")
            assert away.status == 502
            assert b"certificate verify failed" in away.body
