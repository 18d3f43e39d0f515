"""Transcripts are read, played and written as their text says."""

from __future__ import annotations

import pytest

from tests.kit.scenarios.transcript import Block, TranscriptError, parse, play, written

TEXT = """\
# A story.

# First this.
say hello
say there
----
hello
there

hush
----
(nothing)
"""


def run(words: list[str]) -> list[str]:
    return words[1:]


def test_a_transcript_is_written_as_it_was_read() -> None:
    assert written(parse(TEXT)) == TEXT


def test_playing_a_transcript_gives_what_its_commands_print() -> None:
    assert list(play(parse(TEXT), run)) == parse(TEXT)


def test_playing_shows_where_a_transcript_is_wrong() -> None:
    (block,) = play(parse("say hello\n----\ngoodbye\n"), run)

    assert block == Block(("say hello",), ("hello",))


@pytest.mark.parametrize("text", ["say hello\n", "say hello\n----\nhello\n\n# and then\n"])
def test_what_is_no_transcript_is_refused(text: str) -> None:
    with pytest.raises(TranscriptError):
        parse(text)
