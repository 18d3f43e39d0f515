"""What a store must be able to do to take up a backup: begin a new history.

Kept out of the ``Store`` protocol because the server never does it.
"""

from __future__ import annotations

from typing import Protocol

from skerry.store.base import Store

# An identity that starts so is of a store whose restore was begun and not finished. Serving half
# of the objects would look to every client like the deletion of the others.
UNFINISHED = "restoring:"


class RestorableStore(Store, Protocol):
    """A store that can be given a new past."""

    async def adopt(self, identity: str, revision: int) -> None:
        """Begin a new history named *identity*, at *revision* or later.

        Everything up to the newest revision is compacted from then on, so that whoever still
        holds a revision of an earlier history gets ``Compacted``.
        """
