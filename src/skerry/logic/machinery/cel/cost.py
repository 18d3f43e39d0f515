"""Static limits on what rules may cost, checked when a CustomResourceDefinition is written.

The estimate of one run (``Program.worst``) is multiplied by how often the node can occur: the
product of the declared maxima of the lists and maps around it, or, where one is unbounded, as
often as the smallest such node fits into the largest request.
"""

from __future__ import annotations

from typing import Final

from skerry.logic.machinery.cel.types import MAX_REQUEST_BYTES, CelType

EXPRESSION_LIMIT: Final = 10_000_000
SCHEMA_LIMIT: Final = 100_000_000


def occurrences(kind: CelType) -> int:
    """Return how often a node can stand in one request when nothing bounds it."""
    return MAX_REQUEST_BYTES // (kind.smallest + 1)


def expression_cost(worst: float, cardinality: int | None, kind: CelType) -> int:
    """Return the estimate of a rule; *cardinality* None means unbounded."""
    times = cardinality if cardinality is not None else occurrences(kind)
    return int(worst * times)


def exceeded(what: str, cost: int, limit: int) -> str:
    """Return the sentence that refuses a cost, with how far it is over."""
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding "
        "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
