"""How much a logical cluster may hold: objects and bytes, by default and by annotation.

The limits keep one tenant, or one edge, from filling the store for all. They are no price list: a
workspace that needs more gets annotations on its LogicalCluster from an administrator of the hub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MAX_OBJECTS = "quota.skerry.io/max-objects"
MAX_BYTES = "quota.skerry.io/max-bytes"
ANNOTATIONS = (MAX_OBJECTS, MAX_BYTES)
# More digits than any store has bytes.
_MAX_DIGITS = 18


class Usage(NamedTuple):
    """What a logical cluster holds."""

    objects: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds; 0 is none."""

    objects: int = 0
    bytes: int = 0


# A tenth of what a hub is designed for: ten workspaces must go wrong before the others notice.
WORKSPACE_LIMITS = Limits(objects=100_000, bytes=1 << 30)
# Far more than an edge reports, far less than would be felt.
MAILBOX_LIMITS = Limits(objects=20_000, bytes=256 << 20)


def parse_limit(text: str) -> int | None:
    """Return the limit an annotation gives; None when it is no whole number."""
    fits = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if fits else None


def with_annotations(limits: Limits, objects: str, size: str) -> Limits:
    """Return *limits* as far as no annotation gives another one."""
    counted, sized = parse_limit(objects), parse_limit(size)
    return Limits(
        limits.objects if counted is None else counted, limits.bytes if sized is None else sized
    )


def refusal(limits: Limits, usage: Usage, *, creates: bool) -> str:
    """Return why a write that makes the cluster larger is refused; empty when it is not.

    In the words of ResourceQuota, which tools know.
    """
    if creates and limits.objects and usage.objects >= limits.objects:
        return (
            "exceeded quota: workspace, requested: objects=1, "
            f"used: objects={usage.objects}, limited: objects={limits.objects}"
        )
    if limits.bytes and usage.bytes >= limits.bytes:
        return (
            f"exceeded quota: workspace, used: bytes={usage.bytes}, limited: bytes={limits.bytes}"
        )
    return ""
