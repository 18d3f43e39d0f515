from __future__ import annotations

import gc

from skerry.kit import garbage


def test_what_was_loaded_is_not_looked_at_again_and_searches_are_rare() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    try:
        garbage.settle()
        assert gc.get_freeze_count() > frozen
        assert gc.get_threshold()[0] > 10_000
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
