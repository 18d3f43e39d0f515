"""By what a person confirms exactly what was shown: names of holds, and tokens of requests.

A name is a digest of what would go. One destination more or less, and it is another, so a
confirmation is good for what was shown and for nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

# Eight bytes stand for a destination or an object wherever it is charged: of ten thousand, two are
# taken for one another with a chance of one in 10**11.
MEMBER_BYTES: Final = 8
# Short enough to be read out on the telephone; whoever guesses is nobody's concern here.
_NAME_BYTES: Final = 3


def member(parts: Iterable[str]) -> bytes:
    """Return what stands for a thing with these parts, in every process and for ever."""
    text = "\0".join(parts).encode()
    return hashlib.blake2b(text, digest_size=MEMBER_BYTES).digest()


def hold_name(uid: str, members: Iterable[bytes]) -> str:
    """Return what confirms that exactly *members* of the placement with that UID may go."""
    return _named(uid.encode(), *sorted(members))


def request_token(subject: Iterable[str], guards: Iterable[str], effect: Iterable[bytes]) -> str:
    """Return what confirms one change of one object, while it has exactly that effect.

    *subject* says which object and which change; *guards* who ask.
    """
    return _named(member(subject), member(sorted(guards)), *sorted(effect))


def _named(*parts: bytes) -> str:
    found = hashlib.blake2b(digest_size=_NAME_BYTES)
    for part in parts:
        found.update(len(part).to_bytes(4))
        found.update(part)
    return found.hexdigest()
