"""Every story prints what its text says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.scenarios.chain import Chain
from tests.kit.scenarios.transcript import parse, play, written

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem.replace("_", " "))
def test_a_story_prints_what_its_text_says(story: Path, request: pytest.FixtureRequest) -> None:
    text = story.read_text()

    found = written(play(parse(text), Chain().run))

    if request.config.getoption("--rewrite", default=False):
        story.write_text(found)
    else:
        assert found == text
