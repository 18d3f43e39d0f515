"""A handler of events that knows which sequences are impossible."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.runtime.index import Key, key_of


class Witness:
    """A handler that rebuilds the state from events and objects to any that cannot be."""

    def __init__(self) -> None:
        self.state: dict[Key, Object] = {}
        self.events = 0

    def __call__(self, old: Object | None, new: Object | None) -> None:
        self.events += 1
        key = key_of(new or old or {})
        known = self.state.get(key)
        if old is None:
            assert known is None, f"{key} was added twice"
        else:
            assert known is not None, f"{key} changed before it was added"
            assert known["metadata"]["uid"] == old["metadata"]["uid"]
        if new is None:
            del self.state[key]
            return
        if known is not None:
            assert version(known) < version(new), f"{key} went back in time or was repeated"
        self.state[key] = new


def version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])
