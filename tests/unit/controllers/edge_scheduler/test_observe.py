"""Which placement a slice belongs to, for the scheduler as for everybody else."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import SOURCE_PLACEMENT, SliceOwner, placement_of_slice
from skerry.controllers.edge_scheduler.observe import slice_owners

_OWNER = SliceOwner("web", "uid-web").reference()
_LABEL = {SOURCE_PLACEMENT: "web"}


@pytest.mark.parametrize(
    ("metadata", "placement"),
    [
        ({"name": "web-2", "ownerReferences": [_OWNER], "labels": _LABEL}, "web"),
        # A restore without owner references: the scheduler took it for a placement "web-2".
        ({"name": "web-2", "labels": _LABEL}, "web"),
        ({"name": "web-2"}, "web-2"),
    ],
)
def test_the_scheduler_takes_every_slice_for_whose_it_is_to_all_others(
    metadata: dict[str, Any], placement: str
) -> None:
    piece = {"metadata": {**metadata, "annotations": {"kcp.io/cluster": "wmw"}}}
    assert slice_owners(piece) == (("wmw", placement),)
    assert placement_of_slice(piece) == placement
