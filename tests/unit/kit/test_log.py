from __future__ import annotations

import io
import json
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
