"""An OCI runtime is run to its end, with the container's streams, and its complaint is raised."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent import oci_process

# Notes how it was called; what it does then is up to each test.
SCRIPT = """#!/bin/sh
echo "$@" >> {place}/calls
log=$4
shift 4
{act}
"""


def runtime(place: Path, act: str = ":") -> dict[str, Any]:
    """Return what a shim knows of a container, whose runtime is a script that does *act*."""
    program = place / "crun"
    program.write_text(SCRIPT.format(place=place, act=act))
    program.chmod(0o755)
    return {
        "program": [str(program)],
        "path": os.defpath,
        "directory": str(place),
        "identity": "c1",
    }


def calls(place: Path) -> list[str]:
    written = (place / "calls").read_text().splitlines()
    return [line.split(f"{place}/runtime.log ")[1] for line in written]


def test_a_container_is_made_with_its_own_streams_and_its_process_returned(tmp_path: Path) -> None:
    oci = runtime(tmp_path, 'echo 4711 > "$5"; echo out; echo err >&2')
    paths = [tmp_path / name for name in ("in", "out", "err")]
    given = tuple(os.open(path, os.O_RDWR | os.O_CREAT) for path in paths)
    try:
        assert oci_process.create(oci, given) == 4711  # type: ignore[arg-type]
    finally:
        for descriptor in given:
            os.close(descriptor)
    assert [path.read_text() for path in paths] == ["", "out\n", "err\n"]
    assert calls(tmp_path) == [f"create --bundle {tmp_path} --pid-file {tmp_path}/pid c1"]


def test_a_start_has_no_streams_of_ours(tmp_path: Path) -> None:
    oci_process.start(runtime(tmp_path, f"readlink /proc/self/fd/0 > {tmp_path}/where"))
    assert (tmp_path / "where").read_text() == "/dev/null\n"
    assert calls(tmp_path) == ["start c1"]


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("", "crun start failed"),
        ("first\\nlast\\n\\n", "^last$"),
        ('time=\\"x\\" level=error msg=\\"no \\\\\\"such\\\\\\" file\\"\\n', '^no "such" file$'),
    ],
)
def test_what_the_runtime_wrote_last_is_why_it_failed(
    tmp_path: Path, written: str, complaint: str
) -> None:
    oci = runtime(tmp_path, f'printf "{written}" > "$log"; exit 1')
    with pytest.raises(OSError, match=complaint):
        oci_process.start(oci)


def test_a_complaint_of_before_is_not_taken_for_one_of_now(tmp_path: Path) -> None:
    (tmp_path / "runtime.log").write_text("an old story\n")
    with pytest.raises(OSError, match="crun start failed"):
        oci_process.start(runtime(tmp_path, "exit 1"))


def test_what_is_not_there_is_deleted_without_complaint(tmp_path: Path) -> None:
    oci_process.delete(runtime(tmp_path, "exit 1"))
    assert calls(tmp_path) == ["delete --force c1"]
