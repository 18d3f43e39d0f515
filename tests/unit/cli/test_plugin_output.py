"""What becomes of a plugin whose output nobody reads any more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


@pytest.mark.parametrize("words", [["kubectl-kcp", "--help"], ["kubectl-ws", "--help"]])
def test_a_plugin_ends_quietly_when_its_reader_has_gone(words: list[str]) -> None:
    plugin = subprocess.Popen(
        [BIN / words[0], *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert plugin.stdout is not None
    plugin.stdout.close()
    assert plugin.stderr is not None
    assert plugin.stderr.read() == ""
    plugin.stderr.close()
    # What a shell says of a program that a broken pipe has ended.
    assert plugin.wait() == 141
