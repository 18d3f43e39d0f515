"""Where a request of a browser comes from: refusals of other sites, and of names that are not ours.

A name that leads to the console but is not its own is a rebinding attack (kubernetes#8871): the
browser would treat a stranger's page as ours. So ``Host`` must name the console, whatever the port,
and ``Origin`` the very same authority. ``Sec-Fetch-Site`` says the same in words that no script can
set; old browsers leave it out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from skerry.api.errors import Forbidden
from skerry.kit.text import shortened

_SHOWN = 80
_OURS = ("same-origin", "none")
# What a page of another site may do: lead here, as links in a chat do.
_NAVIGATION = "navigate"


def check_host(headers: Mapping[str, str], names: Collection[str]) -> str:
    """Return the authority a request names; raises Forbidden unless it is one of *names*."""
    authority = headers.get("host", "")
    if host_of(authority) not in names:
        raise Forbidden(
            f"Host {shortened(authority, _SHOWN)!r} is no name of this console; --tls-san adds one"
        )
    return authority


def host_of(authority: str) -> str:
    """Return the host of ``host[:port]``, in lower case and without brackets."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].lower().rstrip(".")


def check_own_page(headers: Mapping[str, str], authority: str, *, scheme: str = "https") -> None:
    """Raise Forbidden unless the console's own page sent this: for what acts or reads."""
    origin = headers.get("origin")
    if origin != f"{scheme}://{authority}":
        seen = "none" if origin is None else repr(shortened(origin, _SHOWN))
        raise Forbidden(f"Origin {seen} is not the console's own, {scheme}://{authority}")
    check_site(headers)


def check_site(headers: Mapping[str, str]) -> None:
    """Raise Forbidden when the browser says that another site asks."""
    site = headers.get("sec-fetch-site", "same-origin")
    if site not in _OURS:
        raise Forbidden(f"Sec-Fetch-Site {shortened(site, _SHOWN)!r}: only the console's own page")


def check_navigation(headers: Mapping[str, str]) -> None:
    """Raise Forbidden unless somebody opens a page, or our own page asks."""
    if headers.get("sec-fetch-mode", _NAVIGATION) != _NAVIGATION:
        check_site(headers)
