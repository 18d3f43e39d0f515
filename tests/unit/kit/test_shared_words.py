"""Words that a process and its children see alike."""

from __future__ import annotations

import os

from skerry.kit.shared_words import shared_words


def test_words_begin_at_zero_and_what_a_child_writes_its_parent_reads() -> None:
    words = shared_words(3)
    assert words.tolist() == [0, 0, 0]
    child = os.fork()
    if child == 0:
        words[1] = (1 << 64) - 1
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert words.tolist() == [0, (1 << 64) - 1, 0]
