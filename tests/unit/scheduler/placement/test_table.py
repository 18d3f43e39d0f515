"""Locations as rows of the scheduler's table."""

from __future__ import annotations

import numpy as np
import pytest

from skerry.api.edge import location_ref
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import Location
from skerry.scheduler.placement.table import LocationTable


def test_a_row_follows_the_inventory_when_it_is_read() -> None:
    inventory = Inventory()
    rows = LocationTable(inventory)
    assert (len(rows), rows.rows().tolist()) == (0, [])
    ref = location_ref("c", "l")
    number = inventory.put_location(Location(ref, {}, ()))
    rows.read(number)
    assert rows.row("c|l") == number
    assert rows.target(number).ref == ref
    assert np.array_equal(rows.rows(), [number])
    inventory.remove_location(ref)
    rows.read(number)
    assert len(rows) == 0
    with pytest.raises(LookupError, match="holds no Location"):
        rows.target(number)
