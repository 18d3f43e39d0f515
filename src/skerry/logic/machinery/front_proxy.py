"""Whom the headers of a proxy in front of the server name, as kube-apiserver reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class FrontProxySettings:
    """Which proxies are believed, and in which headers (names in lower case)."""

    client_ca_file: Path
    """Authorities, PEM, that vouch for proxies, and for nobody else."""

    allowed_names: frozenset[str] = frozenset()
    """Common names of the proxies' certificates; with none, any certificate will do."""

    username_headers: tuple[str, ...] = ("x-remote-user",)
    """Headers looked at for the user; the first that is there counts."""

    group_headers: tuple[str, ...] = ("x-remote-group",)
    """Headers that name groups."""

    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)
    """How headers begin whose rest names something more that is known of the user."""


class Named(NamedTuple):
    """A user as headers name it."""

    name: str
    groups: tuple[str, ...]
    extra: Mapping[str, tuple[str, ...]]


def named(settings: FrontProxySettings, headers: Mapping[str, str]) -> Named | None:
    """Return the user that *headers* name, if any.

    A header that came twice has two lines. One of another name than ``X-Remote-…`` comes with its
    values joined by commas; it names as many groups.
    """
    names = (headers.get(name, "").partition("\n")[0].strip() for name in settings.username_headers)
    name = next(filter(None, names), "")
    if not name:
        return None
    groups = (
        group
        for header in settings.group_headers
        for group in _values(header, headers.get(header, ""))
        if group
    )
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        for prefix in settings.extra_prefixes:
            if header.startswith(prefix) and len(header) > len(prefix):
                key = unquote(header.removeprefix(prefix)).lower()
                extra[key] = (*extra.get(key, ()), *_values(header, value))
    return Named(name, tuple(groups), extra)


def _values(header: str, value: str) -> list[str]:
    return value.split("\n" if header.startswith("x-remote-") else ", ")
