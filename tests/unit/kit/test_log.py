from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Literal

import pytest

from skerry.kit import log
from skerry.kit.log import Logger


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_repeats_little_of_a_long_value(form: Literal["text", "json"]) -> None:
    written = io.StringIO()
    before = log._sink.write
    log.configure(format=form, stream=written)
    try:
        long = "x" * 60_000
        Logger("test").info("asked", path=long, error=ValueError(long), listed=[long], count=3)
    finally:
        log._sink.write = before
        log.configure()
    line = written.getvalue()
    assert len(line) < 8000
    assert "count=3" in line or json.loads(line)["count"] == 3


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
