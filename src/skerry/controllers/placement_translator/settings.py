"""What can be chosen about translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TranslatorSettings:
    """How the translator works."""

    strict_customization: bool = True
    """Withhold objects that cannot be customized as asked; else ship them as far as they could."""

    withhold_denatured: bool | None = None
    """Withhold kinds that would act on the hub itself; None: unless the hub is one of ours."""

    concurrency: int = 32
    """Mailboxes written to at once. Enough to keep a hub of two cores busy from afar."""

    status_delay_seconds: float = 0.2
    """How long news for a placement's conditions are gathered before they are written."""


def copies_are_inert(version: Mapping[str, str]) -> bool:
    """Tell by ``/version`` whether a hub leaves projected copies without effect.

    Ours does, and says what it runs on; kcp is written in Go and obeys every Role it finds.
    """
    return version.get("goVersion", "").startswith("python")
