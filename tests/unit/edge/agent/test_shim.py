"""One program's parent as a process of its own, and how it cuts output into lines."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.edge.agent import shim
from skerry.edge.agent.shim import _Lines, _Log

LINE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) ([FP]) (.*)")


def records(path: Path) -> list[tuple[str, str, bytes]]:
    """Return stream, tag and text of what was logged."""
    found = []
    for line in path.read_bytes().splitlines():
        matched = LINE.fullmatch(line)
        assert matched is not None, line
        found.append((matched[1].decode(), matched[2].decode(), matched[3]))
    return found


# -- lines -----------------------------------------------------------------------------------------


class Kept:
    """A log in memory."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes]] = []

    def write(self, stream: str, tag: str, line: bytes) -> None:
        self.records.append((tag, line))


def cut(*chunks: bytes) -> list[tuple[str, bytes]]:
    kept = Kept()
    lines = _Lines(kept, "stdout", 1)  # type: ignore[arg-type]
    for chunk in chunks:
        lines.feed(chunk)
    lines.end()
    return kept.records


@settings(max_examples=50)
@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"d\ne", b"", b"x" * 9000]), max_size=12))
def test_nothing_is_lost_or_made_up_however_output_comes(chunks: list[bytes]) -> None:
    found = cut(*chunks)
    text = b"".join(line + (b"\n" if tag == "F" else b"") for tag, line in found)
    whole = b"".join(chunks)
    assert text == (whole if whole.endswith(b"\n") or not whole else whole + b"\n")
    assert all(len(line) <= 16 * 1024 for _, line in found)


def test_a_long_line_is_cut_and_marked_and_a_short_one_waits_for_its_end() -> None:
    found = cut(b"x" * 40_000, b"y\nnext", b" line\n")
    assert [(tag, len(line)) for tag, line in found] == [
        ("P", 16384),
        ("P", 16384),
        ("F", 40_001 - 2 * 16384),
        ("F", len("next line")),
    ]


def test_a_full_log_begins_anew_and_keeps_one_predecessor(tmp_path: Path) -> None:
    log = _Log(str(tmp_path / "log"), max_bytes=200)
    for number in range(12):
        log.write("stdout", "F", f"line {number}".encode())
    texts = [text for name in ("log.1", "log") for _, _, text in records(tmp_path / name)]
    assert texts[-1] == b"line 11"
    assert texts == [f"line {n}".encode() for n in range(12 - len(texts), 12)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]


def test_a_log_that_is_there_is_gone_on_with(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        _Log(str(tmp_path / "log"), max_bytes=1000).write("stderr", "F", text)
    assert records(tmp_path / "log") == [("stderr", "F", b"one"), ("stderr", "F", b"two")]


@pytest.mark.parametrize("content", [{"a": 1}, {"a": [1, 2]}])
def test_a_record_is_replaced_as_a_whole(tmp_path: Path, content: dict[str, Any]) -> None:
    shim._write_file(str(tmp_path / "record"), {"old": "x" * 100})
    shim._write_file(str(tmp_path / "record"), content)
    assert json.loads((tmp_path / "record").read_text()) == content
    assert [path.name for path in tmp_path.iterdir()] == ["record"]


# -- the process -----------------------------------------------------------------------------------


class Shim:
    def __init__(self, root: Path, *argv: str, **more: Any) -> None:
        self.root = root
        spec = {
            "argv": list(argv),
            "environment": {"PATH": "/usr/bin:/bin", "A": "1"},
            "directory": str(root),
            "rights": {},
            "sources": str(Path(shim.__file__).parents[3]),
            "log": str(root / "log"),
            "log_bytes": 1 << 20,
            "record": str(root / "record.json"),
            "exit": str(root / "exit.json"),
            **more,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(shim.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(spec).encode())
        self.process.stdin.close()
        self.said = json.loads(self.process.stdout.readline())

    def ended(self) -> dict[str, Any]:
        self.process.wait(10)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        found: dict[str, Any] = json.loads((self.root / "exit.json").read_text())
        return found


def test_output_is_logged_by_stream_and_the_exit_written_down(tmp_path: Path) -> None:
    made = Shim(tmp_path, "sh", "-c", "echo $A; echo oops >&2; printf end; exit 3")
    found = made.ended()
    assert (found["code"], found["signal"], found["failure"]) == (3, 0, "")
    assert found["began_ns"] <= found["ended_ns"]
    logged = records(tmp_path / "log")
    assert [r for r in logged if r[0] == "stdout"] == [
        ("stdout", "F", b"1"),
        ("stdout", "F", b"end"),
    ]
    assert ("stderr", "F", b"oops") in logged
    record = json.loads((tmp_path / "record.json").read_text())
    assert (record["shim"], record["pid"]) == (made.process.pid, made.said["pid"])


def test_a_program_that_does_not_exist_is_a_failure_that_names_it(tmp_path: Path) -> None:
    made = Shim(tmp_path, "/no/such/program")
    assert "No such file or directory" in made.said["failure"]
    assert "/no/such/program" in made.said["failure"]
    assert made.ended()["failure"] == made.said["failure"]


def test_a_program_ended_by_a_signal_says_which_and_the_shim_outlives_its_own(
    tmp_path: Path,
) -> None:
    made = Shim(tmp_path, "sleep", "100")
    made.process.send_signal(signal.SIGTERM)  # ignored: its program must be kept
    os.kill(made.said["pid"], signal.SIGKILL)
    found = made.ended()
    assert (found["code"], found["signal"]) == (137, 9)


def test_a_child_that_outlives_the_program_does_not_hold_up_its_end(tmp_path: Path) -> None:
    made = Shim(tmp_path, "sh", "-c", "sleep 20 & echo $!; exit 0")
    assert made.ended()["code"] == 0
    ((_, _, child),) = records(tmp_path / "log")
    os.kill(int(child), signal.SIGKILL)


def test_signals_that_the_shim_ignores_end_its_program(tmp_path: Path) -> None:
    made = Shim(tmp_path, "sleep", "100")
    os.kill(made.said["pid"], signal.SIGTERM)
    assert made.ended()["signal"] == signal.SIGTERM
