"""What a stack reads out of flags that are the hub's, and how it is without processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.app.stack import Part, Stack, StackError, log_format

_words = st.lists(st.sampled_from(["--port", "--log-format", "json", "--v=4", "7", ""]), max_size=6)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], None),
        (["--port", "7"], None),
        (["--log-format", "json"], "json"),
        (["--log-format=json", "--port", "7"], "json"),
        (["--log-format", "text", "--log-format", "json"], "json"),
        (["--log-format"], ""),
    ],
)
def test_a_flag_is_found_however_it_is_written_and_the_last_counts(
    words: list[str], found: str | None
) -> None:
    assert log_format(words) == found


@given(_words)
def test_no_words_are_too_few_or_too_odd(words: list[str]) -> None:
    found = log_format(words)
    assert (found is None) == (not any(word == "--log-format" for word in words))


def test_a_stack_that_never_ran_says_so(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    assert stack.url == ""
    assert stack.parts() == [
        Part("hub", running=False, pid=0, supervised=False),
        Part("controllers", running=False, pid=0, supervised=False),
    ]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = Stack(tmp_path / "file" / "below")
    with pytest.raises(StackError, match=r"cannot keep data in .*/file/below: Not a directory"):
        below.alone().__enter__()


def test_a_kubeconfig_that_cannot_be_read_names_no_hub(tmp_path: Path) -> None:
    (tmp_path / "admin.kubeconfig").write_text("clusters: [")
    assert Stack(tmp_path).url == ""
