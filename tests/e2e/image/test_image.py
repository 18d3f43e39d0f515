"""The Containerfile builds, and what it builds runs as nobody, on a root it cannot write."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

import skerry
from skerry.cli.edge_identity import DEFAULT_IMAGE
from tests.kit.e2e.places import CONFIG_MAPS, Places, SyncerProcess, says
from tests.kit.image.building import Image
from tests.kit.image.containerfile import ContainerfileError, parse
from tests.kit.image.ours import CONTAINERFILE, ROOT, stages
from tests.kit.image.running import container

pytestmark = pytest.mark.long

USER = 65532


def run(image: Image, bundle: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        container(image, bundle, words), capture_output=True, text=True, check=False
    )


def test_the_image_says_its_version_as_a_user_without_rights(image: Image, tmp_path: Path) -> None:
    assert image.user == f"{USER}:{USER}"
    done = run(image, tmp_path / "version", "version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"skerry {skerry.__version__}\n", "")
    image_of_python = Image(image.root, image.environment, user=image.user)
    script = "import os; print(os.getuid()); open('/opt/x', 'w')"
    done = run(image_of_python, tmp_path / "python", "python", "-c", script)
    assert done.stdout == f"{USER}\n"
    assert "Read-only file system: '/opt/x'" in done.stderr


def test_the_image_has_nothing_to_install_or_build_with(image: Image, tmp_path: Path) -> None:
    programs = {path.name for path in (image.root / "opt/skerry/bin").iterdir()}
    assert "skerry" in programs
    assert not {name for name in programs if name.startswith(("pip", "hatch"))}
    done = run(image, tmp_path / "hub", "hub")
    assert (done.returncode, done.stderr) == (3, "skerry hub needs pip install 'skerry[hub]'\n")


async def test_a_syncer_in_the_image_carries_objects(image: Image, tmp_path: Path) -> None:
    async with Places(tmp_path).running() as places:
        await places.configure()
        await places.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
        place = tmp_path / "container"
        (place / "data").mkdir(parents=True)
        for name, source in (("hub", places.hub_kubeconfig), ("edge", places.edge.kubeconfig)):
            (place / name).write_bytes(source.read_bytes())
        for path in (place, *place.iterdir()):
            os.chown(path, USER, USER)
        syncer = SyncerProcess(tmp_path, places.hub_kubeconfig, places.edge.kubeconfig)
        words = ["syncer", "--from-kubeconfig=/at/hub", "--to-kubeconfig=/at/edge",
                 "--sync-target-name=florin", "--data-dir=/at/data"]  # fmt: skip
        syncer.command = container(image, tmp_path / "bundle", words, {"/at": place})
        places.syncer = syncer
        await asyncio.to_thread(syncer.start)
        await says(places, "hello")
        assert syncer.stop() == 0
        assert (place / "data" / "journal").stat().st_uid == USER


def test_the_file_has_the_commands_for_the_images_that_manifests_name() -> None:
    text = CONTAINERFILE.read_text()
    hub = f"skerry-hub:{skerry.__version__}"
    assert f"-t {DEFAULT_IMAGE} ." in text
    assert f"--build-arg LOCK=hub -t {hub} ." in text
    manifests = [path.read_text() for path in (ROOT / "deploy" / "kubernetes").glob("*.yaml")]
    named = {image for each in manifests for image in re.findall(r"^\s+image: (\S+)", each, re.M)}
    assert named == {DEFAULT_IMAGE, hub}
    for lock in ("base", "hub"):
        assert (ROOT / "requirements" / f"{lock}.txt").exists()


def test_a_base_is_named_by_an_argument_and_without_a_registry() -> None:
    assert {stage.base for stage in stages()} == {"python:3.11-slim-bookworm"}
    assert {stage.base for stage in stages(PYTHON="python@sha256:ab")} == {"python@sha256:ab"}


def test_what_is_copied_is_what_an_engine_is_shown() -> None:
    shown = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    copied = {
        word.rstrip("/")
        for stage in stages()
        for instruction in stage.instructions
        if instruction.name == "COPY" and "from" not in instruction.flags
        for word in instruction.words[:-1]
    }
    assert copied == shown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ADD a b", "ADD: not an instruction"),
        ("RUN true", "RUN before the first FROM"),
        ("FROM a b", "want IMAGE or IMAGE AS NAME"),
        ("FROM a\nCOPY $X /", "$X is not set here"),
        ("ARG X=1\nFROM a\nENV Y=$X", "$X is not set here"),
    ],
)
def test_a_containerfile_that_an_engine_refuses_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ContainerfileError) as refused:
        parse(text)
    assert complaint in str(refused.value)


def test_arguments_flags_and_continued_lines_are_read_as_an_engine_reads_them() -> None:
    text = (
        "ARG A=x\nFROM $A AS b\nARG L=base\nRUN a \\\n # no\n && b $L\nCOPY --from=b /r/${L} /t\n"
    )
    (stage,) = parse(text, {"L": "hub"})
    assert (stage.base, stage.name) == ("x", "b")
    argument, run_, copy = stage.instructions
    assert argument.text == "L=hub"
    assert run_.text.split() == ["a", "&&", "b", "$L"]
    assert (copy.flags, copy.words) == ({"from": "b"}, ["/r/hub", "/t"])
