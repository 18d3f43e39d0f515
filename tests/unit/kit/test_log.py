from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest

from skerry.kit import log
from skerry.kit.log import Logger
from skerry.kit.text import inert_line


@contextmanager
def logged(form: Literal["text", "json"]) -> Iterator[io.StringIO]:
    """Have lines of *form* written to what is yielded."""
    written = io.StringIO()
    before = log._sink.write
    log.configure(format=form, stream=written)
    try:
        yield written
    finally:
        log._sink.write = before
        log.configure()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_repeats_little_of_a_long_value(form: Literal["text", "json"]) -> None:
    long = "x" * 60_000
    with logged(form) as written:
        Logger("test").info("asked", path=long, error=ValueError(long), listed=[long], count=3)
    line = written.getvalue()
    assert len(line) < 8000
    assert "count=3" in line or json.loads(line)["count"] == 3


# Controls of both sets, what ends lines, directions of writing, what cannot be written.
EVIL = "a\x1b[2J\x9b2J\x7f\r\n\u2028b\u202e\u2066\x00\x85c\ud800"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_has_nothing_that_a_terminal_obeys(form: Literal["text", "json"]) -> None:
    with logged(form) as written:
        Logger(EVIL).info(
            f"asked {EVIL}", path=EVIL, error=ValueError(EVIL), listed=[EVIL], known={EVIL: EVIL}
        )
    line = written.getvalue()
    assert line.endswith("\n")
    assert inert_line(line[:-1]) == line[:-1]
    assert "a\\u001b[2J\\u009b2J" in line


def test_json_lines_have_every_value_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    with logged("json") as written:
        Logger("test").info(f"asked {EVIL}", path=EVIL, listed=[EVIL], known={EVIL: EVIL}, name="ø")
        log.report_failure("skerry x", EVIL)
    line, failure = json.loads(written.getvalue()), json.loads(capsys.readouterr().err)
    assert (line["msg"], line["path"], line["listed"]) == (f"asked {EVIL}", EVIL, [EVIL])
    assert (line["known"], line["name"]) == ({EVIL: EVIL}, "ø")
    assert failure["msg"] == f"skerry x: {EVIL}"
    assert "ø" in written.getvalue(), "what is only read is written as it is"


def test_values_of_text_lines_are_json_and_exact() -> None:
    with logged("text") as written:
        Logger("test").info("asked", path=EVIL)
    assert json.loads(written.getvalue().partition(" path=")[2]) == EVIL


def test_what_a_command_ends_with_is_one_line_that_is_only_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.announce(f"ready {EVIL}")
    log.report_failure("skerry x", ValueError(EVIL))
    shown = "a?[2J?2J?   b??? c?"
    assert capsys.readouterr() == (f"ready {shown}\n", f"skerry x: {shown}\n")


_PROGRAM = """
import asyncio, logging, threading, warnings
from skerry.kit import log
log.configure(format="json")
log.announce("ready")
log.report_failure("skerry x", ValueError("no such thing"))
warnings.warn("old way", DeprecationWarning, stacklevel=1)
logging.getLogger("asyncio").error("a task was lost")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
raise RuntimeError("nobody expected this")
"""


def test_everything_a_process_writes_is_json_where_lines_are() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", _PROGRAM],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (ready,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (ready["severity"], ready["msg"]) == ("info", "ready")
    failure, warning, lost, in_thread, uncaught = map(json.loads, done.stderr.splitlines())
    assert (failure["severity"], failure["msg"]) == ("error", "skerry x: no such thing")
    assert "DeprecationWarning: old way" in warning["msg"]
    assert (lost["logger"], lost["msg"]) == ("asyncio", "a task was lost")
    assert in_thread["error"] == "ZeroDivisionError: division by zero"
    assert uncaught["error"] == "RuntimeError: nobody expected this"
    assert "Traceback" in uncaught["stack"]


def test_text_is_announced_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    log.announce("skerry hub ready")
    log.report_failure("skerry hub", "no")
    assert capsys.readouterr() == ("skerry hub ready\n", "skerry hub: no\n")
