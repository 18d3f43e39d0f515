"""What of the machine pods may have: below allowed folders, and never by a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.edge.agent.beneath import LeadsOut
from skerry.edge.agent.host_access import (
    HostAccess,
    HostPathRefused,
    host_path_refusal,
    host_path_volume,
)

PARTS = st.lists(st.sampled_from(["data", "datum", "a", ".", ""]), max_size=4)


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    (tmp_path / "allowed").mkdir()
    return tmp_path / "allowed"


def test_nothing_is_allowed_unless_somebody_says_so() -> None:
    refusal = host_path_refusal("/data", HostAccess())
    assert "not below a folder that this edge allows (--allow-host-path; allowed: none)" in refusal


@given(PARTS)
def test_only_what_lies_below_an_allowed_folder_is_allowed(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    inside = [part for part in parts if part not in (".", "")][:1] == ["data"]
    assert (host_path_refusal(path, HostAccess(("/data/",))) == "") is inside


@pytest.mark.parametrize("path", ["data", "/data/../etc", "/data/a/..", ".."])
def test_a_path_that_is_not_absolute_or_climbs_is_refused(path: str) -> None:
    assert "is not an absolute path without '..'" in host_path_refusal(path, HostAccess(("/",)))


@pytest.mark.parametrize("path", ["/srv/edge", "/srv/edge/keys/a", "/srv", "/"])
def test_the_edges_own_files_stay_closed_from_above_and_below(path: str) -> None:
    access = HostAccess(("/",), private=("/srv/edge",))
    assert "the edge's own files" in host_path_refusal(path, access)
    assert host_path_refusal("/srv/edgeling", access) == ""


def test_the_edges_own_files_stay_closed_behind_a_link_to_the_allowed_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "innocent").symlink_to(tmp_path / "private")
    access = HostAccess((str(tmp_path / "innocent"),), private=(str(tmp_path / "private"),))
    assert "the edge's own files" in host_path_refusal(str(tmp_path / "innocent/x"), access)


def test_a_volume_is_known_by_its_prefix_and_the_rest(allowed: Path) -> None:
    (allowed / "a").mkdir()
    volume = host_path_volume({"path": f"{allowed}/a"}, HostAccess((str(allowed),)))
    assert (volume.root, volume.inside, volume.links) == (allowed, "a", False)


def test_the_longest_allowed_folder_counts(allowed: Path) -> None:
    (allowed / "deep" / "a").mkdir(parents=True)
    access = HostAccess((str(allowed), f"{allowed}/deep"))
    volume = host_path_volume({"path": f"{allowed}/deep/a"}, access)
    assert volume.root == allowed / "deep"


def test_a_link_that_a_pod_left_behind_is_not_followed(allowed: Path) -> None:
    (allowed / "link").symlink_to("/etc")
    for kind in ("", "Directory", "DirectoryOrCreate"):
        with pytest.raises(LeadsOut):
            host_path_volume(
                {"path": f"{allowed}/link/sub", "type": kind}, HostAccess((str(allowed),))
            )
    assert not Path("/etc/sub").exists()


@pytest.mark.parametrize(
    ("kind", "name", "is_fine"),
    [
        ("Directory", "folder", True),
        ("Directory", "file", False),
        ("File", "file", True),
        ("File", "folder", False),
        ("", "file", True),
        ("Socket", "file", False),
    ],
)
def test_a_type_is_checked(allowed: Path, kind: str, name: str, *, is_fine: bool) -> None:
    (allowed / "folder").mkdir()
    (allowed / "file").write_text("")
    source = {"path": f"{allowed}/{name}", "type": kind}
    if is_fine:
        assert not host_path_volume(source, HostAccess((str(allowed),))).devices
        return
    with pytest.raises(HostPathRefused, match=f"is not a {kind.lower()}"):
        host_path_volume(source, HostAccess((str(allowed),)))


def test_what_may_be_created_is_created_once_and_kept(allowed: Path) -> None:
    access = HostAccess((str(allowed),))
    for _ in range(2):
        host_path_volume({"path": f"{allowed}/d/e", "type": "DirectoryOrCreate"}, access)
        host_path_volume({"path": f"{allowed}/d/f", "type": "FileOrCreate"}, access)
        (allowed / "d" / "f").write_text("kept")
    assert (allowed / "d" / "e").is_dir()
    assert (allowed / "d" / "f").read_text() == "kept"
    with pytest.raises(FileNotFoundError):
        host_path_volume({"path": f"{allowed}/none"}, access)
    # Only what is asked for: the folders above a file are the operator's to make.
    with pytest.raises(FileNotFoundError):
        host_path_volume({"path": f"{allowed}/x/y", "type": "FileOrCreate"}, access)


def test_devices_are_had_only_by_who_asks_for_one() -> None:
    access = HostAccess(("/dev",))
    assert host_path_volume({"path": "/dev/null", "type": "CharDevice"}, access).devices
    assert not host_path_volume({"path": "/dev/null"}, access).devices
    assert os.path.exists("/dev/null")
