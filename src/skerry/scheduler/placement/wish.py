"""What is asked of the framework: one strategy, for those who hold the workload or for others.

Who already has a workload is judged more mildly than who would be new, so each choice asks twice.
That keeps every answer a matter of the strategy and the Location alone, which is what lets the
framework remember answers for all placements with equal strategies.
"""

from __future__ import annotations

from dataclasses import dataclass

from skerry.logic.fleet.placement.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Wish:
    """The item. ``held``: asked about Locations that were chosen before."""

    strategy: Strategy
    held: bool = False
