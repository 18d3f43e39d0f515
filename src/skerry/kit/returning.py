"""How fast the clients of a server that was away come back to it.

The server says over how long a time they are to spread, its clients keep to that, and whoever
judges their silence allows for it.
"""

from __future__ import annotations

# A client that comes back, an edge, costs some five milliseconds with its heartbeat and what
# follows from that, two of them for handshakes. At this pace a core is nearly taken and nobody
# waits in line; where they come faster many are not answered before they give up, and come again.
RETURNS_PER_SECOND = 170
# Whatever a server says, nobody waits longer than this to come back.
MAX_RETURN_SECONDS = 60.0
# Who had a turn and was not served, as others came too, takes the next one this soon.
MAX_NEXT_TURN_SECONDS = 15.0


def return_seconds(clients: int) -> float:
    """Return over how long a time so many clients should spread."""
    return min(round(clients / RETURNS_PER_SECOND, 1), MAX_RETURN_SECONDS)
