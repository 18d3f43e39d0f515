"""What a check finds, and the words that all checks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.objects import Object


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a pod breaks a policy: in a few words, and in detail."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Check = Callable[[Mapping[str, Any], Object], Violation | None]
"""Looks at the metadata and the spec of a pod or of a pod template."""


def containers_of(spec: Object) -> Iterator[Object]:
    """Yield every container of a pod, in the order Kubernetes names them."""
    for group in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(group) or ()


def security_of(part: Object) -> Object:
    """Return the security context of a pod spec or of a container; empty when it has none."""
    found: Object = part.get("securityContext") or {}
    return found


def named(words: Iterable[str]) -> str:
    """Return names in double quotes, separated by commas."""
    return ", ".join(f'"{word}"' for word in words)


def counted(singular: str, number: int, plural: str = "") -> str:
    """Return a noun for one or for several."""
    return singular if number == 1 else plural or f"{singular}s"


def containers_named(names: Sequence[str]) -> str:
    """Return the subject of a sentence about containers."""
    return f"{counted('container', len(names))} {named(names)}"


def setters(pod: bool, containers: Sequence[str]) -> list[str]:
    """Return who sets a value: the pod itself, some of its containers, or both."""
    found = ["pod"] if pod else []
    return [*found, containers_named(containers)] if containers else found


def is_windows(spec: Object) -> bool:
    """Tell whether a pod is for Windows, where these fields cannot be set."""
    return (spec.get("os") or {}).get("name") == "windows"
