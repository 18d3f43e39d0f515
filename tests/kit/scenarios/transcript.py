"""A transcript: read, run and written again.

::

    # Why this block is here.
    command with words
    another
    ----
    what they print

Blocks are separated by an empty line; output that would be empty is written as ``(nothing)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

SEPARATOR = "----"
NOTHING = "(nothing)"

# Runs one command, given as words; returns the lines it prints.
Run = Callable[[list[str]], Iterable[str]]


class TranscriptError(ValueError):
    """A text that is no transcript, or a command that nobody knows."""


class Block(NamedTuple):
    """Comments and commands as they stand in the text, and what they print."""

    head: tuple[str, ...]
    output: tuple[str, ...]

    @property
    def commands(self) -> list[str]:
        return [line for line in self.head if not line.startswith("#")]


def parse(text: str) -> list[Block]:
    """Return the blocks of a transcript; comments without commands belong to the next block."""
    blocks = []
    head: list[str] = []
    for paragraph in text.strip("\n").split("\n\n"):
        lines = paragraph.split("\n")
        if SEPARATOR in lines:
            at = lines.index(SEPARATOR)
            blocks.append(Block((*head, *lines[:at]), tuple(lines[at + 1 :])))
            head = []
        elif all(line.startswith("#") for line in lines):
            head += [*lines, ""]
        else:
            raise TranscriptError(f"block {lines[0]!r}: want commands, {SEPARATOR!r} and output")
    if head:
        raise TranscriptError(f"comment {head[0]!r} has no block after it")
    return blocks


def play(blocks: Iterable[Block], run: Run) -> Iterator[Block]:
    """Yield the blocks with what their commands print now."""
    for block in blocks:
        output = [line for command in block.commands if command for line in run(command.split())]
        yield Block(block.head, tuple(output) or (NOTHING,))


def written(blocks: Iterable[Block]) -> str:
    """Return the text of a transcript; the inverse of ``parse``."""
    return "\n\n".join("\n".join((*b.head, SEPARATOR, *b.output)) for b in blocks) + "\n"
