"""Users that an image names, by its own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.edge.agent.image_users import UnknownUser, numbers_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    etc = tmp_path / "etc"
    etc.mkdir()
    lines = ["broken", "odd:x:y:z", "root:x:0:0::/root:/bin/sh", "web:x:101:102::/:/bin/false",
             "lost:x:103:nowhere", "super:x:²:0"]  # fmt: skip
    (etc / "passwd").write_text("\n".join(lines))
    (etc / "group").write_text("web:x:102:\nstaff:x:50:web\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("web", (101, 102)),
        ("lost", (103, 0)),
        ("101", (101, 102)),
        ("999", (999, 0)),
        ("web:staff", (101, 50)),
        ("web:7", (101, 7)),
        ("999:staff", (999, 50)),
    ],
)
def test_names_and_numbers_are_what_the_files_say(
    root: Path, name: str, numbers: tuple[int, int]
) -> None:
    assert numbers_of(name, root) == numbers


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody", "user nobody"),
        ("odd", "user odd"),
        ("web:no", "group no"),
        ("²", "user ²"),
        ("super", "user super"),
        ("web:²", "group ²"),
    ],
)
def test_who_is_in_no_file_is_named(root: Path, name: str, words: str) -> None:
    with pytest.raises(UnknownUser, match=f"unable to find {words}: no matching entries"):
        numbers_of(name, root)


def test_an_image_without_files_knows_numbers_only(tmp_path: Path) -> None:
    assert numbers_of("7", tmp_path) == (7, 0)
    with pytest.raises(UnknownUser):
        numbers_of("web", tmp_path)


def test_a_link_leads_nowhere_but_into_the_image(root: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_text("evil:x:1:1::/:/")
    (root / "etc" / "passwd").unlink()
    (root / "etc" / "passwd").symlink_to(outside)
    with pytest.raises(UnknownUser):
        numbers_of("evil", root)
