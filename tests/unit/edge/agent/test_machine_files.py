"""The machine's files as plans see them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from skerry.edge.agent.machine_files import MachineFiles, interpreter_paths


def test_what_is_at_a_path_and_what_may_not_be_looked_at_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    files = MachineFiles()
    kinds = {name: files.kind(str(tmp_path / name)) for name in ("file", "folder", "link", "no")}
    assert kinds == {"file": "file", "folder": "directory", "link": "link", "no": ""}
    assert files.link(str(tmp_path / "link")) == "folder"
    assert list(files.names(str(tmp_path))) == ["file", "folder", "link"], "in order"
    assert list(files.names(str(tmp_path / "file"))) == []
    assert list(files.names(str(tmp_path / "no"))) == []


def test_the_interpreter_is_among_its_paths_and_no_home_is() -> None:
    found = interpreter_paths()
    assert os.path.realpath(sys.executable) in found
    assert os.path.join(sys.prefix, "lib") in found
    assert sys.prefix not in found
    assert found == sorted(set(found))
