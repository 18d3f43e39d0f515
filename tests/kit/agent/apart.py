"""Code that changes namespaces, mounts or routes, run where it harms nobody: in a process apart."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).parents[3] / "src"
# Everything of its own but processes: what is mounted or routed there ends with it.
_ALONE = """
import ctypes, json, os, sys
sys.path.append({source!r})
from skerry.edge.agent import namespaces
namespaces.unshare({flags})
if {flags} & namespaces.CLONE_NEWNS:
    namespaces.mount("none", "/", flags=namespaces.MS_REC | namespaces.MS_SLAVE)
def say(value):
    print(json.dumps(value), flush=True)
"""
MOUNTS = "namespaces.CLONE_NEWNS"
NETWORK = "namespaces.CLONE_NEWNET"


def apart(code: str, *arguments: str, flags: str = "0") -> Any:
    """Run *code* in namespaces of its own (*flags*); return what it ``say``s."""
    program = _ALONE.format(source=str(_SOURCE), flags=flags) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
