"""What an image says of itself, and what the catalogue says first."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent import image_files
from skerry.edge.agent.image_files import with_files
from skerry.edge.agent.image_layout import ImageError, Layout
from skerry.edge.agent.runtime import CannotStart, Image

IMAGE = Image("web:1", "web@sha256:0")


def bundle(path: Path, **process: Any) -> tuple[str, str]:
    path.mkdir(exist_ok=True)
    config = {"root": {"path": "rootfs"}, "process": process}
    (path / "config.json").write_text(json.dumps(config))
    return "bundle", str(path)


def test_a_bare_root_says_nothing_but_where_it_is(tmp_path: Path) -> None:
    found = with_files(Image("web:1", "id", ("run",)), ("rootfs", str(tmp_path)), None)
    assert (found.root, found.entrypoint, found.user) == (tmp_path, ("run",), None)
    with pytest.raises(ImageError, match="is no directory"):
        with_files(IMAGE, ("rootfs", str(tmp_path / "none")), None)


def test_a_bundle_says_command_environment_folder_and_user(tmp_path: Path) -> None:
    files = bundle(
        tmp_path / "b", args=["run", "-v"], env=["A=1", "B=x=y"], cwd="/srv", user={"uid": 7}
    )
    found = with_files(IMAGE, files, None)
    assert found.entrypoint == ("run", "-v")
    assert found.environment == {"A": "1", "B": "x=y"}
    assert (found.working_directory, found.user, found.group) == ("/srv", 7, None)
    assert found.root == tmp_path / "b" / "rootfs"


def test_what_the_catalogue_says_comes_first(tmp_path: Path) -> None:
    files = bundle(tmp_path / "b", args=["run"], env=["A=1", "B=2"], cwd="/srv")
    own = Image("web:1", "id", ("mine",), environment={"A": "own"}, working_directory="/own")
    found = with_files(own, files, None)
    assert (found.entrypoint, found.command) == (("mine",), ())
    assert found.environment == {"A": "own", "B": "2"}
    assert found.working_directory == "/own"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"root": 3}', "{}", '{"root": {"path": 1}}'])
def test_what_is_no_bundle_is_named_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ImageError, match="is no OCI bundle"):
        with_files(IMAGE, ("bundle", str(tmp_path)), None)


# -- layouts ---------------------------------------------------------------------------------------


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have the reader of layouts (tested for itself) find a configuration."""
    reads: list[Path] = []
    config: dict[str, Any] = {}

    def read(path: Path) -> Layout:
        reads.append(path)
        return Layout(path, "sha256:abc", {"config": dict(config)}, ())

    monkeypatch.setattr(image_files, "read_layout", read)
    image_files._read_once.cache_clear()
    (tmp_path / "image.tar").write_text("")

    def found(**more: Any) -> Image:
        config.clear()
        config.update(more)
        os.utime(tmp_path / "image.tar", ns=(0, len(reads) + 1))
        return with_files(IMAGE, ("layout", str(tmp_path / "image.tar")), tmp_path / "images")

    found.reads = reads  # type: ignore[attr-defined]
    return found


def test_a_layout_is_known_by_its_digest_and_unpacked_below_it(layout: Any, tmp_path: Path) -> None:
    found = layout(Entrypoint=["run"], Cmd=["-v"], Env=["A=1"], WorkingDir="/srv")
    assert found.identity == "web@sha256:abc"
    assert found.root == tmp_path / "images" / "sha256-abc"
    assert (found.entrypoint, found.command) == (("run",), ("-v",))
    assert found.unpack is not None


def test_another_entrypoint_silences_the_images_arguments(layout: Any, tmp_path: Path) -> None:
    layout(Entrypoint=["run"], Cmd=["-v"])
    own = Image("web:1", "web@x", ("mine",))
    found = with_files(own, ("layout", str(tmp_path / "image.tar")), tmp_path / "images")
    assert (found.entrypoint, found.command) == (("mine",), ())


@pytest.mark.parametrize(
    ("user", "number", "group", "name"),
    [
        ("", None, None, ""),
        ("7", 7, None, ""),
        ("7:8", 7, 8, ""),
        ("www", None, None, "www"),
        ("www:8", None, None, "www:8"),
        ("7:staff", None, None, "7:staff"),
        (":8", None, 8, ""),
    ],
)
def test_a_user_is_numbers_or_a_name_for_the_images_own_files(
    layout: Any, user: str, number: int | None, group: int | None, name: str
) -> None:
    found = layout(User=user)
    assert (found.user, found.group, found.user_name) == (number, group, name)


def test_ports_that_are_exposed_are_those_of_tcp(layout: Any) -> None:
    assert layout(ExposedPorts={"80/tcp": {}, "53/udp": {}, "8080": {}}).ports == (80, 8080)


@pytest.mark.parametrize("wrong", [{"ExposedPorts": {"http/tcp": {}}}, {"Env": 3}])
def test_a_configuration_that_makes_no_sense_is_the_images_fault(layout: Any, wrong: Any) -> None:
    with pytest.raises(ImageError, match="configuration"):
        layout(**wrong)


def test_a_layout_is_read_again_only_when_it_has_changed(layout: Any, tmp_path: Path) -> None:
    layout()
    files = ("layout", str(tmp_path / "image.tar"))
    with_files(IMAGE, files, tmp_path / "images")
    assert len(layout.reads) == 1
    (tmp_path / "image.tar").write_text("another")
    with_files(IMAGE, files, tmp_path / "images")
    assert len(layout.reads) == 2


def test_a_layout_without_a_place_or_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no place to unpack it"):
        with_files(IMAGE, ("layout", str(tmp_path)), None)
    with pytest.raises(ImageError, match="No such file"):
        with_files(IMAGE, ("layout", str(tmp_path / "none")), tmp_path)


def test_an_image_that_cannot_be_unpacked_cannot_start(layout: Any, tmp_path: Path) -> None:
    unpack = layout().unpack
    (tmp_path / "images").write_text("a file where the folder should be")
    with pytest.raises(CannotStart):
        unpack()
