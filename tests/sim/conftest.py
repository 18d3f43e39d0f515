"""What holds for every simulation: garbage is looked for as in the processes they stand for."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from skerry.kit import garbage


@pytest.fixture(scope="module", autouse=True)
def _settled() -> Iterator[None]:
    """Search less often: a fifth of the time of simulations went to looking for circles."""
    before = gc.get_threshold()
    garbage.settle()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
