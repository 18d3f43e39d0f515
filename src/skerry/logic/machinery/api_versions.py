"""The order of API versions: stable before beta before alpha, newer first, then by name.

``v10, v2, v1, v11beta2, v10beta3, v3beta1, v12alpha1, v11alpha2, foo1, foo10``: Kubernetes
prefers the first of a group's versions, so this order decides what kubectl speaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", re.ASCII)
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


def priority(version: str) -> tuple[int, int, int, int, str]:
    """Return a sort key; the most preferred version comes first."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = found.groups()
    return (0, _STABILITY[stability], -int(major), -int(minor or 0), version)


def ordered(versions: Iterable[str]) -> list[str]:
    """Return *versions*, the most preferred first."""
    return sorted(versions, key=priority)
