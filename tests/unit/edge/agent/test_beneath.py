"""Paths stay inside the directory they belong to, also while somebody swaps them."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.edge.agent.beneath import LeadsOut, Resolver, kernel_resolves, kind_of, parts_of

KERNEL = Resolver(kernel=True)


@pytest.fixture(params=["kernel", "walking"])
def either(request: pytest.FixtureRequest) -> Resolver:
    """Both ways to resolve, whichever the kernel knows."""
    if request.param == "kernel" and not kernel_resolves():
        pytest.skip("this kernel does not know openat2")
    return Resolver(kernel=request.param == "kernel")


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A volume beside something that is not to be reached."""
    (tmp_path / "secret").write_text("keys")
    (tmp_path / "outside").mkdir()
    found = tmp_path / "volume"
    (found / "a" / "b").mkdir(parents=True)
    (found / "a" / "file").write_text("text")
    yield found
    # Nothing was ever made beside the volume.
    assert sorted(os.listdir(tmp_path)) == ["outside", "secret", "volume"]
    assert os.listdir(tmp_path / "outside") == []


def _in(volume: Path, action: Callable[[int], int]) -> str:
    """Do something with the open volume and return where its result leads."""
    root = os.open(volume, os.O_PATH | os.O_DIRECTORY)
    try:
        found = action(root)
    finally:
        os.close(root)
    try:
        return os.readlink(f"/proc/self/fd/{found}")
    finally:
        os.close(found)


def _opened(way: Resolver, path: str, root: int) -> int:
    return way.open(root, path)


def _made(way: Resolver, path: str, root: int) -> int:
    return way.directory(root, path)


class TestBothWays:
    @pytest.mark.parametrize("path", ["a/b", "a//b/", "./a/b", "a/file", "", "."])
    def test_what_is_inside_is_opened(self, either: Resolver, volume: Path, path: str) -> None:
        found = _in(volume, lambda root: either.open(root, path))
        assert found == os.path.normpath(volume / path)

    @pytest.mark.parametrize(
        "path", ["..", "../secret", "a/../../secret", "/etc", "//etc", "a/..", "a\0b"]
    )
    def test_a_path_that_says_it_leads_out_is_refused(
        self, either: Resolver, volume: Path, path: str
    ) -> None:
        with pytest.raises(LeadsOut):
            _in(volume, lambda root: either.open(root, path))
        with pytest.raises(LeadsOut):
            _in(volume, lambda root: either.directory(root, path))

    @pytest.mark.parametrize(
        "target", ["/", "/etc", "..", "../secret", "a/../../outside", "/proc/self/root", "a"]
    )
    def test_a_link_is_refused_wherever_it_leads(
        self, either: Resolver, volume: Path, target: str
    ) -> None:
        (volume / "link").symlink_to(target)
        (volume / "a" / "deep").symlink_to(target)
        for path in ("link", "link/x", "a/deep", "a/deep/x/y"):
            with pytest.raises(LeadsOut):
                _in(volume, partial(_opened, either, path))
            with pytest.raises(OSError, match=r"refused|Not a directory"):
                _in(volume, partial(_made, either, path))

    def test_missing_directories_are_made_inside(self, either: Resolver, volume: Path) -> None:
        found = _in(volume, lambda root: either.directory(root, "x/y/z", 0o750))
        assert found == str(volume / "x" / "y" / "z")
        assert _in(volume, lambda root: either.directory(root, "x/y/z")) == found

    def test_a_place_to_mount_on_is_made_as_what_it_is(
        self, either: Resolver, volume: Path
    ) -> None:
        found = _in(volume, lambda root: either.place(root, "/etc/hosts", directory=False))
        assert found == str(volume / "etc" / "hosts")
        assert Path(found).is_file()
        found = _in(volume, lambda root: either.place(root, "/etc/ssl/certs", directory=True))
        assert Path(found).is_dir()

    def test_kinds_are_distinguished(
        self, either: Resolver, volume: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listening = socket.socket(socket.AF_UNIX)
        monkeypatch.chdir(volume)  # a short way: a socket's name may not be long
        listening.bind("socket")
        for path, kind in (("a", "Directory"), ("a/file", "File"), ("socket", "Socket")):
            root = os.open(volume, os.O_PATH)
            opened = either.open(root, path)
            assert kind_of(opened) == kind
            os.close(opened)
            os.close(root)
        listening.close()


@pytest.mark.skipif(not kernel_resolves(), reason="this kernel does not know openat2")
class TestLinks:
    def test_links_that_stay_inside_may_be_followed(self, volume: Path) -> None:
        (volume / "..data").symlink_to("a")
        (volume / "key").symlink_to("..data/file")
        found = _in(volume, lambda root: KERNEL.open(root, "key", links=True))
        assert found == str(volume / "a" / "file")

    @pytest.mark.parametrize("target", ["/", "../secret", "/proc/self/root/etc", "a/../../secret"])
    def test_links_that_lead_out_are_refused_even_then(self, volume: Path, target: str) -> None:
        (volume / "link").symlink_to(target)
        with pytest.raises(LeadsOut):
            _in(volume, lambda root: KERNEL.open(root, "link", links=True))

    def test_magic_links_are_refused(self) -> None:
        root = os.open("/proc/self", os.O_PATH)
        try:
            for path in ("root", "cwd", "exe", "fd/0", "root/etc"):
                with pytest.raises(OSError, match=r"refused|No such file"):
                    KERNEL.open(root, path, links=True)
        finally:
            os.close(root)

    def test_links_of_a_root_are_followed_within_it(self, volume: Path) -> None:
        (volume / "var").mkdir()
        (volume / "var" / "run").symlink_to("/a")
        (volume / "up").symlink_to("../../../a")
        found = _in(volume, lambda root: KERNEL.open_in_root(root, "/var/run/b"))
        assert found == str(volume / "a" / "b")
        assert _in(volume, lambda root: KERNEL.open_in_root(root, "/up/b")) == found
        made = _in(volume, lambda root: KERNEL.place(root, "/var/run/new", directory=True))
        assert made == str(volume / "a" / "new")


def test_swapping_a_directory_for_a_link_never_leads_out(either: Resolver, tmp_path: Path) -> None:
    """A pod exchanges a directory and a link as fast as it can; each open is inside, or refused."""
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    (volume / "real").mkdir(parents=True)
    outside.mkdir()
    (volume / "link").symlink_to(outside)
    stopping = threading.Event()

    def swap() -> None:
        while not stopping.is_set():
            os.rename(volume / "real", volume / "name")
            os.rename(volume / "name", volume / "real")
            os.rename(volume / "link", volume / "name")
            os.rename(volume / "name", volume / "link")

    swapping = threading.Thread(target=swap)
    swapping.start()
    outcomes = {"inside": 0, "refused": 0}
    root = os.open(volume, os.O_PATH | os.O_DIRECTORY)
    try:
        for _ in range(300):
            try:
                found = either.open(root, "name", os.O_PATH | os.O_DIRECTORY)
            except (LeadsOut, FileNotFoundError, NotADirectoryError):
                outcomes["refused"] += 1
                continue
            assert not os.path.samestat(os.fstat(found), os.stat(outside))
            os.close(found)
            outcomes["inside"] += 1
    finally:
        stopping.set()
        swapping.join()
        os.close(root)
    assert sum(outcomes.values()) == 300


@given(st.text(alphabet="ab./\0", max_size=12))
def test_the_names_of_a_path_never_lead_up(path: str) -> None:
    try:
        parts = parts_of(path)
    except LeadsOut:
        assert path.startswith("/") or ".." in path.split("/") or "\0" in path
    else:
        assert not {"", ".", ".."} & set(parts)
        assert all("/" not in part for part in parts)
