"""Thousands of generated requests, answered as kube-apiserver 1.32 answered them.

``kube-apiserver-1.32.json.gz`` is what it answered; ``differences.txt`` lists the requests that a
plain server answers differently, and in what. A difference that is not listed is a regression; one
that is listed and gone comes off the list (``python -m tests.kit.differential``, ``--recorded`` and
``--list``). Why they differ is in ``docs/reference/api-compatibility.md``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
_LISTED = HERE / "differences.txt"


def test_what_differs_from_kube_apiserver_is_what_is_listed(tmp_path: Path) -> None:
    found = tmp_path / "found.txt"
    recorded = HERE / "kube-apiserver-1.32.json.gz"
    command = [sys.executable, "-m", "tests.kit.differential"]
    done = subprocess.run(
        [*command, "--recorded", recorded, "--list", found],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr[-2000:] + done.stdout[-2000:]
    differ, known = (set(path.read_text().splitlines()) for path in (found, _LISTED))
    assert sorted(differ - known) == [], "answered otherwise than before"
    assert sorted(known - differ) == [], "answered alike by now: list anew"
    asked = int(done.stdout.splitlines()[-1].split()[0])
    assert asked > 5000
