"""Flags of kubectl plugins, read the way kubectl's own are.

Flags may stand before and after arguments, ``--name value`` and ``--name=value`` mean the same,
``-`` is an argument, and mistakes are reported in the words of the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

# Flags every command of the plugins takes; those without a value say so with True.
KUBECONFIG_FLAGS = {
    "kubeconfig": False,
    "context": False,
    "user": False,
    "server": False,
    "token": False,
    "namespace": False,
    "certificate-authority": False,
    "tls-server-name": False,
    "insecure-skip-tls-verify": True,
    "help": True,
}
_SHORT = {"s": "server", "n": "namespace", "h": "help"}


class UsageError(Exception):
    """A mistake in how a command was called; *advice* is of ours, and has lines of its own."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


@dataclass(slots=True)
class Parsed:
    """Arguments and flags of one call."""

    arguments: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)

    def value(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)

    def on(self, name: str) -> bool:
        return self.values.get(name, "false") == "true"


def parse(
    words: Sequence[str], own: dict[str, bool], short: dict[str, str] | None = None
) -> Parsed:
    """Take *words* apart; *own* are the command's flags, True for those without a value."""
    known = {**KUBECONFIG_FLAGS, **own}
    letters = {**_SHORT, **(short or {})}
    found, waiting = Parsed(), list(words)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            found.arguments += waiting
            break
        if word == "-" or not word.startswith("-"):
            found.arguments.append(word)
        else:
            _flag(word, waiting, known, letters, found)
    return found


def _flag(
    word: str, waiting: list[str], known: dict[str, bool], letters: dict[str, str], found: Parsed
) -> None:
    name, equals, value = word.lstrip("-").partition("=")
    if not word.startswith("--"):
        if name[:1] not in letters:
            raise UsageError(f"unknown shorthand flag: {name[:1]!r} in {word}")
        if len(name) > 1:
            # The value of a short flag may follow it without a blank.
            equals, value = "=", name[1:] + equals + value
        name = letters[name[0]]
    elif name not in known:
        raise UsageError(f"unknown flag: --{name}")
    if known[name]:
        found.values[name] = _truth(name, value) if equals else "true"
    elif equals:
        found.values[name] = value
    elif waiting:
        found.values[name] = waiting.pop(0)
    else:
        raise UsageError(f"flag needs an argument: --{name}")


def _truth(name: str, value: str) -> str:
    if value.lower() in ("true", "1", "t"):
        return "true"
    if value.lower() in ("false", "0", "f"):
        return "false"
    raise UsageError(
        f'invalid argument "{value}" for "--{name}" flag: strconv.ParseBool: '
        f'parsing "{value}": invalid syntax'
    )
