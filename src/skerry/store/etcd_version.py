"""Which versions of etcd keep what they acknowledge.

A commit is acknowledged when etcd has said so. Before 3.4.21, and in 3.5 before 3.5.5, a member
that is alone says so before the write is on its disk; from 3.5.0 to 3.5.2 members that are killed
under load may disagree afterwards. Nothing here can make up for either, so whoever runs such an
etcd is warned when the store is opened. Clients that were answered, and watches that resume, rely
on what may be missing after a crash.
"""

from __future__ import annotations

import re

# The oldest version of each minor one that keeps its promise; older minor versions never do.
_SOUND = {(3, 4): 21, (3, 5): 5}


def keeps_what_it_acknowledges(version: str) -> bool:
    """Tell whether an etcd of *version*, such as ``3.5.21``, survives being killed whole.

    One that does not say its version in this way is not ours to judge, and is believed.
    """
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        return True
    major, minor, patch = map(int, found.groups())
    if (major, minor) < min(_SOUND):
        return False
    return patch >= _SOUND.get((major, minor), 0)
