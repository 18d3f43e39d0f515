"""Directories that hold secrets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from skerry.kit.secret_files import may_be_closed, secret_directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def found(mode: int, user: int = 7) -> os.stat_result:
    return os.stat_result((stat.S_IFDIR | mode, 0, 0, 0, user, 0, 0, 0, 0, 0))


def test_a_new_directory_is_its_owners_alone(tmp_path: Path) -> None:
    assert mode(secret_directory(tmp_path / "a" / "b")) == 0o700


@pytest.mark.parametrize("before", [0o755, 0o777, 0o750, 0o711, 0o2775])
def test_a_directory_that_is_there_already_is_closed(tmp_path: Path, before: int) -> None:
    place = tmp_path / "data"
    place.mkdir()
    place.chmod(before)
    (place / "store.db").write_text("")
    assert mode(secret_directory(place)) == 0o700
    assert (place / "store.db").exists()


def test_a_link_to_a_directory_closes_the_directory(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    secret_directory(tmp_path / "link")
    assert mode(tmp_path / "there") == 0o700


def test_a_sticky_directory_stays_everybodys(tmp_path: Path) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o1777)
    assert mode(secret_directory(place)) == 0o1777


@pytest.mark.parametrize("path", ["/", "/var", "/var/lib", "/etc", "/home", "/usr/local"])
def test_directories_of_the_machine_are_never_closed(path: str) -> None:
    assert not may_be_closed(found(0o755), Path(path), 7)
    assert may_be_closed(found(0o755), Path(path) / "skerry", 7)


def test_somebody_elses_directory_is_left_alone() -> None:
    assert not may_be_closed(found(0o777, user=0), Path("/data"), 7)
