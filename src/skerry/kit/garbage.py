"""The search for garbage, in processes that run for long and must not pause.

What such a process makes is let go of by reference counts; circles are rare. Python looks for them
whenever seven hundred more objects exist than were let go of, and through everything there is when
a quarter has been added, which a single large object does: a pause that grows with the process.
"""

from __future__ import annotations

import gc


def settle() -> None:
    """Call once a process has started: what was loaded is no garbage and is not looked at again,
    and circles are looked for at every so many objects that a search takes a millisecond or two."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
