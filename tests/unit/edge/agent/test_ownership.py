"""A volume is given to a group, and nothing outside of it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from skerry.edge.agent.ownership import belongs_to, give_to_group

GROUP = os.getgid()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_files_are_readable_and_directories_pass_their_group_on(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True, mode=0o700)
    file = inner / "f"
    file.write_text("x")
    file.chmod(0o600)
    assert not belongs_to(tmp_path, GROUP)
    give_to_group(tmp_path, GROUP)
    assert belongs_to(tmp_path, GROUP)
    assert mode(file) & 0o660 == 0o660
    for directory in (tmp_path, tmp_path / "a", inner):
        assert mode(directory) & 0o2770 == 0o2770


def test_what_else_a_file_allows_stays_but_for_other_peoples_rights(tmp_path: Path) -> None:
    script = tmp_path / "s"
    script.write_text("x")
    script.chmod(0o4755)
    give_to_group(tmp_path, GROUP)
    assert mode(script) == 0o775


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, volume = tmp_path / "outside", tmp_path / "volume"
    outside.write_text("x")
    outside.chmod(0o600)
    volume.mkdir()
    (volume / "link").symlink_to(outside)
    (volume / "up").symlink_to(tmp_path)
    give_to_group(volume, GROUP)
    assert mode(outside) == 0o600
    assert not belongs_to(tmp_path, GROUP) or mode(tmp_path) & 0o2770 != 0o2770


def test_a_volume_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="link"):
        give_to_group(tmp_path / "link", GROUP)


def test_another_group_does_not_own_it(tmp_path: Path) -> None:
    give_to_group(tmp_path, GROUP)
    assert not belongs_to(tmp_path, GROUP + 1)
