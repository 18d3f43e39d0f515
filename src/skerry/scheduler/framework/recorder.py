"""What the runner tells whoever measures it."""

from __future__ import annotations

from typing import Protocol


class Recorder(Protocol):
    """Receives durations and counts; must be cheap."""

    def point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """Note how long all plugins of an extension point took."""

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Note how long one plugin took; only reported for sampled attempts."""

    def evaluated(self, plugin: str, point: str, profile: str, count: int = 1) -> None:
        """Note that a plugin was asked."""


class NoRecorder:
    """Forgets everything."""

    def point(self, point: str, status: str, profile: str, seconds: float) -> None:
        return

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        return

    def evaluated(self, plugin: str, point: str, profile: str, count: int = 1) -> None:
        return
