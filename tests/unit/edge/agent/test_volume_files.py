"""Files of volumes change all at once, and nothing a pod puts there leads out of the volume."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.edge.agent.beneath import LeadsOut
from skerry.edge.agent.volume_files import File, write_files


def files(**contents: str) -> dict[str, File]:
    return {name: File(text.encode(), 0o644) for name, text in contents.items()}


def read(directory: Path) -> dict[str, str]:
    """Return what a program sees in a volume."""
    return {
        str(path.relative_to(directory)): path.read_text()
        for name in os.listdir(directory)
        if not name.startswith("..")
        for path in ([directory / name] if (directory / name).is_file() else
                     [each for each in (directory / name).rglob("*") if each.is_file()])
    }  # fmt: skip


NAMES = st.sampled_from(["a", "b", "dir/a", "dir/b", "dir/deep/c"])
CONTENTS = st.dictionaries(NAMES, st.text("xyz", max_size=3), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(CONTENTS, min_size=1, max_size=4))
def test_a_volume_holds_what_was_written_last_and_no_more(
    tmp_path: Path, versions: list[dict[str, str]]
) -> None:
    directory = tmp_path / os.urandom(8).hex()
    directory.mkdir()
    before: dict[str, str] | None = None
    for wanted in versions:
        assert write_files(directory, files(**wanted)) is (wanted != before)
        assert read(directory) == wanted
        before = wanted
    # One version is left, and the link to it.
    kept = {name for name in os.listdir(directory) if name.startswith("..")}
    assert kept == {"..data", os.readlink(directory / "..data")}


def test_a_name_leads_through_the_link_that_is_exchanged(tmp_path: Path) -> None:
    write_files(tmp_path, files(a="1", b="1"))
    first = os.readlink(tmp_path / "..data")
    write_files(tmp_path, files(a="2", b="2"))
    assert os.readlink(tmp_path / "..data") != first
    assert os.readlink(tmp_path / "a") == "..data/a"
    assert not (tmp_path / first).exists()


@pytest.mark.parametrize("name", ["../a", "..data", "/a", "dir/../../a", ""])
def test_a_path_that_is_not_the_volumes_is_refused_and_nothing_is_written(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(LeadsOut):
        write_files(tmp_path, {"a": File(b"1", 0o644), name: File(b"2", 0o644)})
    assert os.listdir(tmp_path) == []


def test_a_link_that_a_pod_put_in_place_of_ours_removes_nothing_elsewhere(tmp_path: Path) -> None:
    volume, other = tmp_path / "volume", tmp_path / "other"
    volume.mkdir()
    other.mkdir()
    (other / "precious").write_text("kept")
    (volume / "..data").symlink_to(other)
    assert write_files(volume, files(a="1"))
    assert (other / "precious").read_text() == "kept"
    assert read(volume) == {"a": "1"}


def piped(file: Path) -> None:
    """Put a pipe in place of a file: who opens it to read would wait for a writer."""
    file.unlink()
    os.mkfifo(file)


def linked(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda shown: (shown / "a").write_text("forged"),
        lambda shown: (shown / "a").chmod(0o600),
        lambda shown: (shown / "b").write_text("more"),
        lambda shown: (shown / "a").unlink(),
        lambda shown: piped(shown / "a"),
        lambda shown: linked(shown / "a"),
    ],
)
def test_what_a_pod_changed_is_put_right_again(tmp_path: Path, spoil: object) -> None:
    write_files(tmp_path, files(a="1"))
    spoil(tmp_path / os.readlink(tmp_path / "..data"))  # type: ignore[operator]
    assert write_files(tmp_path, files(a="1"))
    assert read(tmp_path) == {"a": "1"}
    assert not write_files(tmp_path, files(a="1"))


def test_a_group_may_read_what_its_own_mode_would_not_let_it(tmp_path: Path) -> None:
    group = os.getegid()
    write_files(tmp_path, {"key": File(b"1", 0o400)}, group)
    found = (tmp_path / "key").stat()
    assert (found.st_mode & 0o777, found.st_gid) == (0o440, group)
    assert not write_files(tmp_path, {"key": File(b"1", 0o400)}, group)
