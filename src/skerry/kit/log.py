"""Structured logs, in klog form by default or as JSON lines.

A message is constant text; values go in keys. ``V`` levels follow klog: 0 always, 2 what an
operator wants to see, 4 and more for debugging. Nothing secret and no whole objects.

    log = Logger("edge-scheduler")
    log.info("updated SinglePlacementSlice", key=key, rv=rv)

Where lines are JSON, everything a process writes is: what it announces, the sentence it ends with,
warnings of libraries, exceptions nobody caught.

Values are what others have written, and lines are read on terminals in the end: in both forms what
a terminal obeys is written as JSON's escape of it, so a value is known exactly and a line is one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, TextIO

from skerry.kit.clock import Clock, SystemClock
from skerry.kit.text import inert_json, inert_line, shortened

Format = Literal["text", "json"]

# A path or a header that a client sent may be as long as a request head; a line that names it
# stays readable.
_VALUE_LIMIT = 2048


@dataclass(slots=True)
class Sink:
    """Where lines go and which of them."""

    write: Callable[[str], object]
    verbosity: int = 2
    format: Format = "text"
    clock: Clock = field(default_factory=SystemClock)


def _write_error(line: str) -> None:
    # A full disk or a closed terminal takes no lines, and is no reason to end.
    with contextlib.suppress(OSError):
        sys.stderr.write(line)


_sink = Sink(write=_write_error)


def configure(
    *,
    verbosity: int = 2,
    format: Format = "text",  # noqa: A002 - the flag is called --log-format
    stream: TextIO | None = None,
    clock: Clock | None = None,
) -> None:
    """Set what every logger of this process does from now on."""
    _sink.verbosity = verbosity
    _sink.format = format
    if stream is not None:
        _sink.write = stream.write
    if clock is not None:
        _sink.clock = clock
    _capture(format == "json")


def current_format() -> Format:
    """Return the form of lines, for processes that this one starts."""
    return _sink.format


def announce(line: str) -> None:
    """Print a line for whoever started this process."""
    with contextlib.suppress(OSError):
        print(_form("I", line), flush=True)  # noqa: T201 - what it is for


def report_failure(command: str, error: object) -> None:
    """Print the sentence that *command* ends with."""
    _write_error(_form("E", f"{command}: {error}") + "\n")


def _form(severity: str, line: str) -> str:
    if _sink.format == "text":
        return inert_line(line)
    where = f"{os.path.basename(sys._getframe(2).f_code.co_filename)}:{sys._getframe(2).f_lineno}"
    return _json_line(severity, "", where, line, {}).rstrip("\n")


def _capture(on: bool) -> None:
    """Have what Python itself would print as text become lines, or leave it to Python again."""
    sys.excepthook = _log_uncaught if on else sys.__excepthook__
    threading.excepthook = _log_uncaught_in_thread if on else threading.__excepthook__
    logging.captureWarnings(on)
    root = logging.getLogger()
    root.removeHandler(_bridge)
    if on:
        root.addHandler(_bridge)


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    stack = "".join(traceback.format_exception(kind, error, trace))
    Logger().error("uncaught exception", error=f"{kind.__name__}: {error}", stack=stack)


class _Bridge(logging.Handler):
    """Writes what libraries log, asyncio's complaints and Python's warnings among them."""

    def emit(self, record: logging.LogRecord) -> None:
        severity = "E" if record.levelno >= logging.ERROR else "W"
        values: dict[str, object] = {"logger": record.name}
        if record.exc_info and record.exc_info[0] is not None:
            values["stack"] = "".join(traceback.format_exception(*record.exc_info))
        where = f"{record.filename}:{record.lineno}"
        _sink.write(_json_line(severity, "", where, record.getMessage().strip(), values))


_bridge = _Bridge(logging.WARNING)


class Logger:
    """A named source of lines, with values bound to all of them."""

    __slots__ = ("_bound", "_name")

    def __init__(self, name: str = "", **bound: object) -> None:
        self._name = name
        self._bound = bound

    def bind(self, **values: object) -> Logger:
        """Return a logger that adds *values* to each line."""
        return Logger(self._name, **{**self._bound, **values})

    def enabled(self, verbosity: int) -> bool:
        return verbosity <= _sink.verbosity

    def debug(self, message: str, **values: object) -> None:
        """Say that something was decided or left alone (klog level 4)."""
        if _sink.verbosity >= 4:
            self._emit("I", message, values)

    def info(self, message: str, *, v: int = 0, **values: object) -> None:
        """Say that state changed."""
        if _sink.verbosity >= v:
            self._emit("I", message, values)

    def warning(self, message: str, **values: object) -> None:
        """Say that service is degraded and will be retried."""
        self._emit("W", message, values)

    def error(self, message: str, **values: object) -> None:
        """Say that a person must act."""
        self._emit("E", message, values)

    def _emit(self, severity: str, message: str, values: dict[str, object]) -> None:
        frame = sys._getframe(2)
        where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        merged = {**self._bound, **values}
        line = _json_line if _sink.format == "json" else _text_line
        _sink.write(line(severity, self._name, where, message, merged))


def _text_line(
    severity: str, name: str, where: str, message: str, values: dict[str, object]
) -> str:
    moment = _sink.clock.now()
    head = f"{severity}{moment:%m%d %H:%M:%S.%f} {threading.get_native_id():7d} {where}]"
    pairs = "".join(f" {key}={_text_value(value)}" for key, value in values.items())
    controller = f" controller={json.dumps(name)}" if name and "controller" not in values else ""
    return inert_json(f"{head} {json.dumps(message, ensure_ascii=False)}{controller}{pairs}\n")


def _json_line(
    severity: str, name: str, where: str, message: str, values: dict[str, object]
) -> str:
    record: dict[str, Any] = {
        "ts": _sink.clock.now().timestamp(),
        "severity": {"I": "info", "W": "warning", "E": "error"}[severity],
        "caller": where,
        "msg": message,
    }
    if name:
        record["controller"] = name
    bounded = {key: _json_value(value) for key, value in values.items()}
    return inert_json(json.dumps(record | bounded, default=str, ensure_ascii=False)) + "\n"


def _json_value(value: object) -> object:
    if isinstance(value, bool | int | float | None):
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return shortened(text, _VALUE_LIMIT) if len(text) > _VALUE_LIMIT else value


def _text_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, BaseException):
        value = f"{type(value).__name__}: {value}"
    if isinstance(value, str):
        return json.dumps(shortened(value, _VALUE_LIMIT), ensure_ascii=False)
    return shortened(json.dumps(value, default=str, ensure_ascii=False), _VALUE_LIMIT)
