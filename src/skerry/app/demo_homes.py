"""Where demos of this user keep what they run, and which of them run now.

Each has a folder of its own in the machine's temporary folder. It says who plays the demo, by pid
and start time, and where its data is; so other commands find a demo while it runs, and the next
demo ends what one that was killed has left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from skerry.app.supervised import Supervised, note

_PREFIX, _OWNER, _PLACE = "skerry-demo-", "demo.json", "place"


@contextlib.contextmanager
def demo_home(
    data_dir: Path | None, end: Callable[[Path], None], report: Callable[[str], None]
) -> Iterator[Path]:
    """Yield where a demo keeps its data: *data_dir*, or a folder that is gone afterwards.

    First *end* ends what demos that were killed have left running, and *report* gets a line.
    """
    for home in _homes():
        if not _is_running(home):
            end(_place(home))
            shutil.rmtree(home, ignore_errors=True)
            report(f"An earlier demo was killed; what it had left running in {home} was ended.")
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        home = Path(folder)
        data = (data_dir or home / "data").resolve()
        (home / _PLACE).write_text(str(data))
        note(home / _OWNER)
        yield data


def running_demos() -> list[Path]:
    """Return where the demos that run now keep their data."""
    return sorted(_place(home) for home in _homes() if _is_running(home))


def _homes() -> Iterator[Path]:
    """Yield the folders of this user's demos; those of others are none of our business."""
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = home.lstat()
            private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022
            if private and found.st_uid == os.getuid() and (home / _OWNER).is_file():
                yield home


def _is_running(home: Path) -> bool:
    return Supervised(home / _OWNER, home / "demo.log").running


def _place(home: Path) -> Path:
    try:
        return Path((home / _PLACE).read_text())
    except OSError:
        return home / "data"
