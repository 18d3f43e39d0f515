"""Sets of completion indexes as Jobs write them: ``1,3-5,7``."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str) -> set[int]:
    """Return the indexes *text* names."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Return the shortest text for *indexes*; runs of three and more are written as ranges."""
    parts: list[str] = []
    ordered = sorted(set(indexes))
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        if end - start >= 2:
            parts.append(f"{ordered[start]}-{ordered[end]}")
        else:
            parts += [str(number) for number in ordered[start : end + 1]]
        start = end + 1
    return ",".join(parts)
