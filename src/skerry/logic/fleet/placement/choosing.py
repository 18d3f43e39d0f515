"""Who chooses among the Locations that match, where a strategy asks for that.

The choice is the scheduling framework's, which knows of us and not we of it; so whoever builds an
index hands in what makes the chooser. It is made for the first placement with a strategy, and
until then costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from pyroaring import BitMap

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.strategy import Strategy


class Choice(NamedTuple):
    """The numbers of the Locations chosen; ``shortage`` says why they are not enough."""

    locations: list[int]
    shortage: str = ""


class Choosing(Protocol):
    """Chooses among the Locations of one inventory."""

    def changed(self, location: int) -> None:
        """Hear that the Location of that number is new, other or gone, or its availability is."""

    def choose(
        self, strategy: Strategy, matching: BitMap, present: AbstractSet[ObjectRef]
    ) -> Choice:
        """Return which of the Locations in *matching* to take, given those taken before."""

    def refusal(self, strategy: Strategy, location: int, present: AbstractSet[ObjectRef]) -> str:
        """Return why *strategy* does not let a Location through; empty when it does."""


MakeChoosing = Callable[[Inventory], Choosing]
