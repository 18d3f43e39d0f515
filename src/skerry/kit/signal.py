"""Handlers of something that happens, attached once everything they need has been built.

Parts that tell each other what happened cannot all be given to one another when they are made.
A part has a ``Signal`` instead; whoever puts the parts together connects the handlers at the end.
Handlers are called in the order of their connection, where and when the signal is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """Calls its handlers; nobody need listen."""

    def __init__(self) -> None:
        self._handlers: list[Callable[P, None]] = []

    def connect(self, handler: Callable[P, None]) -> None:
        """Have *handler* called from now on."""
        self._handlers.append(handler)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every handler."""
        for handler in self._handlers:
            handler(*args, **kwargs)
