from __future__ import annotations

from skerry.kit.caching import SHORT, short_text_cache


def test_short_texts_are_worked_out_once_and_long_ones_each_time() -> None:
    asked: list[str] = []

    @short_text_cache(10)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    for text in ("a", "a", "b" * SHORT, "b" * SHORT, "c" * (SHORT + 1), "c" * (SHORT + 1)):
        assert length(text) == len(text)
    assert [len(text) for text in asked] == [1, SHORT, SHORT + 1, SHORT + 1]
