"""The fixtures, used as the how-to shows them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "test-against-it.md"


def test_the_examples_of_the_how_to_run_as_they_are_printed(tmp_path: Path) -> None:
    test, program = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    (tmp_path / "test_page.py").write_text(test)
    (tmp_path / "program.py").write_text(program)
    # Nothing of ours is explained by its assertions, and to rewrite them all takes long.
    plain = ["-q", "-p", "no:cacheprovider", "--assert=plain"]
    command = [sys.executable, "-m", "pytest", *plain, "test_page.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert re.match(r"https://127\.0\.0\.1:\d+ \S+\.kubeconfig\n", ran.stdout)
