"""The programs an installation brings, as files on a path.

Made from what ``pyproject.toml`` declares, so that they are those of this source, however long ago
somebody installed it.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = """\
#!{python}
import sys
from {module} import {function}
sys.exit({function}())
"""


def installed(folder: Path) -> Path:
    """Write every program into *folder* and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, where in project["scripts"].items():
        module, _, function = where.partition(":")
        program = folder / name
        program.write_text(_PROGRAM.format(python=sys.executable, module=module, function=function))
        program.chmod(0o755)
    return folder
