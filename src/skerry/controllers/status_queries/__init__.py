"""Answers StatusQueries, and keeps the answers true.

Reads StatusQueries in the view of the provider's export ``edge.kcp.io``, Locations and SyncTargets
in those of root's exports, and of everything else what the status feed hands on: which objects
placements select, where they go, and each copy while it is whole in hand. Lists the objects of a
kind once more when a query asks something of them that was not kept.

Writes the status of StatusQueries, and deletes those whose time is over.

Invariants: a complete answer is the one that ``logic.fleet.query`` computes from all rows at once;
a query sees rows of its own workspace alone, one in the provider workspace all; an answer is
written twice a second at most, and never without a difference; columns of an old question never
stand above rows of a new one, and after a restart the old answer stands until the new is complete.

``feed`` says what is asked of the status feed, ``extraction`` what is kept of each object,
``events`` takes changes into the tables of ``logic.fleet.query.tables``; ``observe`` and ``decide``
compare one query's status with its answer; ``controller`` is the wiring.
"""

from typing import Final

# Max bytes of the rows that are kept for queries by default. Here, so that whoever only
# offers it as a flag need not load the rest.
MAX_BYTES: Final = 1 << 30
