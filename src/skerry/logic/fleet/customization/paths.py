"""The paths of replacements: the part of JSONPath in which every place was meant.

Names are letters, digits and underscores; a member with any other character is written in
quotes. There are no filters and no negative numbers: a replacement that lands where nobody
pointed, because a list was shorter than its author thought, is worse than one that is refused. A
``.0`` is an item of a list or the member of a map that is called so, since both occur in objects
and the author sees which.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from skerry.kit.caching import short_text_cache
from skerry.logic.machinery.jsonpath import (
    Dialect,
    Items,
    JSONPathError,
    Members,
    Number,
    Step,
    parsed,
)

_DIALECT = Dialect(
    re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII), re.compile(r"[0-9]{1,9}", re.ASCII)
)


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path."""

    text: str
    steps: tuple[Step, ...]

    @property
    def definite(self) -> bool:
        """Whether it can mean at most one place, so that a missing one may be made."""
        return all(map(_single, self.steps))


def _single(step: Step) -> bool:
    match step:
        case Members(names):
            return len(names) == 1
        case Items(indexes):
            return len(indexes) == 1
        case Number():
            return True
        case _:
            return False


# Replacements are written once and made at every destination.
@short_text_cache(4096)
def parse_path(text: str) -> Path:
    """Read a path; ``JSONPathError`` says what was found where."""
    if not text.startswith("$"):
        raise JSONPathError(f"path {text!r}: want '$' at the beginning")
    return Path(text, parsed(text, _DIALECT))
