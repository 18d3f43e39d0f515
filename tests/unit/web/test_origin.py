"""Only the console's own page acts, and only under a name of the console."""

from __future__ import annotations

import pytest

from skerry.api.errors import Forbidden
from skerry.web.origin import check_host, check_navigation, check_own_page, check_site, host_of

NAMES = frozenset(("hub.example", "127.0.0.1", "::1"))


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("hub.example", "hub.example"),
        ("HUB.example.:8443", "hub.example"),
        ("[::1]:8443", "::1"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("", ""),
    ],
)
def test_the_host_of_an_authority(authority: str, host: str) -> None:
    assert host_of(authority) == host


@pytest.mark.parametrize(
    "host", ["evil.example", "", "127.0.0.1.evil.example", "[::2]:1", "x" * 999]
)
def test_a_name_that_is_not_the_consoles_is_refused(host: str) -> None:
    with pytest.raises(Forbidden, match="is no name of this console"):
        check_host({"host": host}, NAMES)
    assert check_host({"host": "hub.example:8443"}, NAMES) == "hub.example:8443"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://hub.example"},
        {"origin": "https://hub.example:8443"},
        {"origin": "https://hub.example", "sec-fetch-site": "cross-site"},
        {"origin": "https://hub.example", "sec-fetch-site": "same-site"},
    ],
)
def test_what_our_page_did_not_send_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden):
        check_own_page(headers, "hub.example")


def test_what_our_page_sent_passes_also_without_the_newer_headers() -> None:
    check_own_page({"origin": "https://hub.example"}, "hub.example")
    check_own_page(
        {"origin": "https://hub.example", "sec-fetch-site": "same-origin"}, "hub.example"
    )
    check_site({})


def test_a_link_from_another_site_opens_the_page_and_nothing_else_of_it_does() -> None:
    check_navigation({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})
    with pytest.raises(Forbidden):
        check_navigation({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"})
