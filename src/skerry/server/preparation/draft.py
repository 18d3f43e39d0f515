"""An object that is used several times, each time as if never touched."""

from __future__ import annotations

from typing import cast

import orjson

from skerry.api.errors import BadRequest
from skerry.api.objects import Object
from skerry.server.codec import loads


class Draft:
    """An object, or the JSON of one.

    The first taker gets the original; copies are made only for those that follow.
    """

    __slots__ = ("_original", "_text")

    def __init__(self, obj: Object | bytes) -> None:
        if isinstance(obj, bytes):
            self._original: Object | None = None
            self._text = obj
            return
        try:
            self._text = orjson.dumps(obj)
        except (TypeError, orjson.JSONEncodeError) as error:
            raise BadRequest(f"the object provided cannot be encoded as JSON: {error}") from error
        self._original = obj

    def decode(self) -> None:
        """Have the object ready for its first taker."""
        if self._original is None:
            self._original = cast("Object", loads(self._text))

    def take(self) -> Object:
        """Return an object that nobody else will see."""
        obj, self._original = self._original, None
        return cast("Object", loads(self._text)) if obj is None else obj
