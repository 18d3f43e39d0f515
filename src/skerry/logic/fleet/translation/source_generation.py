"""Which generation of its source a copy was made of.

Whether a change has arrived everywhere cannot be seen from the copies alone: one that has not been
written yet looks like one that is up to date. So where a placement has the states of all copies
become that of the source, each copy records the generation it was made of. It is not compared as
content is, so copies that nobody asks this of are not written for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.edge import SOURCE_GENERATION
from skerry.api.objects import Object
from skerry.kit.text import whole_number


def recorded_generation(copy: Mapping[str, Any]) -> int:
    """Return the generation that a copy records; 0 when it records none."""
    notes = copy["metadata"].get("annotations") or {}
    text = notes.get(SOURCE_GENERATION)
    return (whole_number(text) or 0) if text else 0


def with_generation(copy: Object, generation: int) -> Object:
    """Return *copy* with the record of the generation that it was made of."""
    metadata = copy["metadata"]
    notes = {**(metadata.get("annotations") or {}), SOURCE_GENERATION: str(generation)}
    return {**copy, "metadata": {**metadata, "annotations": notes}}
