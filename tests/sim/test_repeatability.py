"""A seed says everything: processes with the same seed take the same steps at the same times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.chain.replay import KINDS

ROOT = Path(__file__).parents[2]


def _replayed(kind: str, hashing: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kit.chain.replay", kind, "7"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hashing, "PYTHONPATH": f"{ROOT}/src:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_depends_on_its_seed_and_not_on_the_order_of_sets(kind: str) -> None:
    steps, _ = (first := _replayed(kind, "1")).split()
    assert int(steps) > 50, "next to nothing happened"
    assert _replayed(kind, "2") == first
