"""Placing workloads on edge Locations: the scheduling framework with other items and targets.

The item is what an EdgePlacement's ``spec.strategy`` wishes, the targets are Locations. Filters
turn Locations down, scores rank them, and as many as wished for are chosen, evenly over the values
of labels and without needless moves. Placements without a strategy never come here.

* ``wish``: the item.
* ``table``: Locations in rows, as the inventory numbers them.
* ``plugins``: readiness, taints and tolerations, membership in a domain of the spread.
* ``registry``: those, and what other packages bring.
* ``chooser``: runs them, and is what the table ``destination`` asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skerry.logic.fleet.placement.choosing import Choosing
    from skerry.logic.fleet.placement.inventory import Inventory


def location_chooser(inventory: Inventory) -> Choosing:
    """Return what chooses among the Locations of *inventory*.

    Arrays and plugins are loaded here, on first use: most hubs have no placement that asks.
    """
    from skerry.scheduler.placement.chooser import LocationChooser

    return LocationChooser(inventory)
