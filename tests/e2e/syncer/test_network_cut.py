"""The network between hub and edge, cut in both directions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Several heartbeats. Beyond 75 s the syncer gives its connections up, which takes the other way
# back: there it meets a hub that was away, as in ``test_a_while_without_the_hub``.
_SECONDS = "5"
ROOT = Path(__file__).resolve().parents[3]


def _forbidden() -> str:
    """Return why no network can be made here; empty when one can."""
    if shutil.which("ip") is None:
        return "the command ip is not installed"
    trial = "ip link set lo up && echo 1 > /proc/sys/net/ipv4/ip_forward"
    done = subprocess.run(
        ["unshare", "-Urn", "sh", "-c", f"{trial} && unshare -n true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr.strip()


def test_an_edge_cut_off_without_a_word_goes_on_and_follows_when_it_is_mended(
    tmp_path: Path,
) -> None:
    if reason := _forbidden():
        pytest.skip(f"no network namespace can be made here: {reason}")
    done = subprocess.run(
        ["unshare", "-Urn", "--kill-child", "--fork",
         sys.executable, "-m", "tests.e2e.syncer.network_cut", str(tmp_path), _SECONDS],
        cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout == "mended\n"
