"""The stories of the syncer again, with a hub that is used as any Kubernetes server is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sim import test_syncer
from tests.sim.syncer_world import SyncerWorld


@pytest.fixture(autouse=True)
def ordinary_hub() -> Iterator[None]:
    SyncerWorld.ordinary = True
    yield
    SyncerWorld.ordinary = False


globals().update({name: it for name, it in vars(test_syncer).items() if name.startswith("test_")})
