"""Layers become files, and nothing they say reaches outside."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.edge.agent.catalogue import Catalogue
from skerry.edge.agent.image_layout import (
    ImageError,
    apply_layer,
    guarded,
    inside,
    parts_of,
    read_layout,
)
from skerry.edge.agent.runtime import ImageNotFound

Member = tuple[str, str, str]  # name, kind, content or target


def layer(*members: Member) -> io.BytesIO:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as archive:
        for name, kind, text in members:
            member = tarfile.TarInfo(name)
            member.type = {"dir": b"5", "link": b"2", "hard": b"1", "file": b"0"}[kind]
            member.mode = 0o755
            if kind == "file":
                member.size = len(text)
            else:
                member.linkname = text
            archive.addfile(member, io.BytesIO(text.encode()))
    found.seek(0)
    return found


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_whiteouts_take_away_what_lower_layers_gave(tmp_path: Path) -> None:
    apply_layer(
        layer(("a/one", "file", "1"), ("a/two", "file", "2"), ("b/x", "file", "x")), tmp_path
    )
    apply_layer(layer(("a/.wh.one", "file", ""), ("b/.wh..wh..opq", "file", "")), tmp_path)
    apply_layer(layer(("b/y", "file", "y"), ("c", "hard", "a/two")), tmp_path)
    assert files(tmp_path) == {"a/two": "2", "b/y": "y", "c": "2"}


def test_links_lead_where_the_container_sees_them_lead(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    apply_layer(
        layer(
            ("usr/lib", "dir", ""),
            ("lib", "link", "/usr/lib"),
            ("out", "link", str(outside)),
            ("up", "link", "../../.."),
            ("lib/file", "file", "in"),
            ("out/file", "file", "in"),
            ("up/file", "file", "in"),
            ("../escape", "file", "no"),
            ("/absolute", "file", "in"),
        ),
        root,
    )
    assert list(outside.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"root", "outside"}
    found = files(root)
    assert found["usr/lib/file"] == found["absolute"] == found["file"] == "in"


def test_a_kind_may_change_from_layer_to_layer(tmp_path: Path) -> None:
    apply_layer(layer(("a/b", "file", "1"), ("c", "file", "2")), tmp_path)
    apply_layer(layer(("a", "link", "c"), ("c", "dir", ""), ("c/d", "file", "3")), tmp_path)
    assert files(tmp_path) == {"c/d": "3"}
    assert (tmp_path / "a").is_symlink()


_NAMES = st.lists(
    st.sampled_from(["a", "b", "link", "loop", "up", "..", ".", "", "/", "//"]), max_size=6
).map("/".join)


@given(_NAMES)
def test_parts_are_names_and_nothing_that_could_be_a_path(name: str) -> None:
    assert all(part and part != "." and "/" not in part for part in parts_of(name))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_NAMES)
def test_wherever_a_path_leads_it_leads_inside(linked: Path, name: str) -> None:
    # Only looked up, never written: as root a mistake here would reach the machine itself.
    try:
        found = inside(linked, parts_of(name))
    except ImageError:
        return
    assert found == linked or str(found).startswith(f"{linked}/")
    assert ".." not in found.parts


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A root with links that lead up, out and round in circles."""
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    for name, target in (("link", "//a"), ("loop", "loop"), ("up", "../../.."), ("b", "/")):
        (root / name).symlink_to(target)
    return root


@pytest.mark.parametrize("path", ["/", "//", "/etc", "..", "a/..", ".", "up/x", "out/x", "a/../.."])
def test_a_path_outside_is_refused_before_anything_is_done(linked: Path, path: str) -> None:
    (linked / "out").symlink_to("/usr")
    with pytest.raises(ImageError, match="leads out of"):
        guarded(linked, linked / path)


def test_names_that_mean_the_directory_itself_change_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "kept").write_text("x")
    apply_layer(layer((".wh...", "file", ""), (".wh..", "file", ""), (".wh.", "file", "")), root)
    apply_layer(layer(("//", "dir", ""), ("//a", "file", "y"), ("..", "file", "")), root)
    assert files(root) == {"kept": "x", "a": "y"}
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_what_is_no_layout_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="is no OCI image layout"):
        read_layout(tmp_path)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("rootfs: /nowhere", "is no directory"),
        ("bundle: /nowhere", "is no OCI bundle"),
        ("layout: /nowhere", "No such file"),
        ("rootfs: relative", "is no absolute path"),
        ("{rootfs: /a, layout: /b}", "only one of"),
    ],
)
def test_an_entry_whose_files_cannot_be_had_says_why(
    tmp_path: Path, entry: str, fault: str
) -> None:
    listed = tmp_path / "images.yaml"
    named = entry.strip("{}")
    listed.write_text(f"images: [{{names: [acme/box], {named}}}]")
    with pytest.raises(ImageNotFound, match=fault):
        Catalogue(listed, tmp_path / "images").find("acme/box")
