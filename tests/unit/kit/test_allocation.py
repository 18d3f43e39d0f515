"""Buffers of connections take no more of the machine than was written into them."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import ctypes
from pathlib import Path
from skerry.kit.allocation import LARGE_BYTES, keep_large_apart

raw = ctypes.pythonapi
raw.PyMem_RawMalloc.restype = ctypes.c_void_p
raw.PyMem_RawMalloc.argtypes = [ctypes.c_size_t]
raw.PyMem_RawFree.argtypes = [ctypes.c_void_p]

def heap():
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("[heap]"):
            first, last = line.split()[0].split("-")
            return int(last, 16) - int(first, 16)
    return 0

{call}
raw.PyMem_RawFree(raw.PyMem_RawMalloc(4 * LARGE_BYTES))
before = heap()
held = [raw.PyMem_RawMalloc(LARGE_BYTES) for _ in range(40)]
print((heap() - before) // LARGE_BYTES)
"""


def _on_the_heap(call: str) -> int:
    program = _PROGRAM.format(call=call)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return int(ended.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_buffer_is_a_mapping_of_its_own_whatever_was_given_back_before() -> None:
    assert _on_the_heap("keep_large_apart()") == 0
    assert _on_the_heap("") > 30, "else nothing needs to be done"
