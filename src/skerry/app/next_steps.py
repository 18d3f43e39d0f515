"""Commands for people to go on with: one a line, to be pasted as they are.

What a shell needs to understand them comes first: where our programs are, unless they are on the
path already, and which kubeconfig is meant. Programs that this machine does not have are not
suggested.
"""

from __future__ import annotations

import shlex
import shutil
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_PLUGIN = "kubectl-ws"


def next_steps(
    kubeconfig: Path,
    commands: Sequence[str],
    which: Callable[[str], str | None] = shutil.which,
    scripts: Path | None = None,
) -> list[str]:
    """Return the lines to paste: what to export, then those of *commands* that work here.

    *scripts* is where the programs of this installation are.
    """
    folder = scripts or Path(sysconfig.get_path("scripts"))
    return [*_exports(kubeconfig, which, folder), *_usable(commands, which)]


def _exports(kubeconfig: Path, which: Callable[[str], str | None], folder: Path) -> Iterator[str]:
    found = which(_PLUGIN)
    ours = folder / _PLUGIN
    if ours.exists() and (found is None or Path(found).resolve() != ours.resolve()):
        yield f'export PATH={shlex.quote(str(folder))}:"$PATH"'
    yield f"export KUBECONFIG={shlex.quote(str(kubeconfig))}"


def _usable(commands: Sequence[str], which: Callable[[str], str | None]) -> Iterator[str]:
    for command in commands:
        program = shlex.split(command)[0]
        if program == "skerry" or which(program) is not None:
            yield command
