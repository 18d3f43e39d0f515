"""An object that is used several times, each time as if never touched."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.objects import Object


class Draft:
    """An object, and how to make it anew.

    The first taker gets the original. Hardly any write is tried twice, so nothing is copied for
    those that may follow: they get what *again* makes.
    """

    __slots__ = ("_again", "_original")

    def __init__(self, obj: Object, again: Callable[[], Object]) -> None:
        self._original: Object | None = obj
        self._again = again

    def take(self) -> Object:
        """Return an object that nobody else will see."""
        obj, self._original = self._original, None
        return self._again() if obj is None else obj
