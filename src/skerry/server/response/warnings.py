"""What was noticed about a request, served or refused: ``Warning`` headers, which kubectl shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skerry.server.http.message import Answer

# As much as kube-apiserver tells, so that no client's limit on headers is met.
_WARNING_LETTERS = 4096
_LETTERS_PER_WARNING = 256


def with_warnings(answer: Answer, warnings: list[str]) -> Answer:
    """Return *answer* with a header for each warning, said once and escaped."""
    headers = [*answer.headers]
    for text in _few_enough(dict.fromkeys(warnings)):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        headers.append(("Warning", f'299 - "{escaped}"'))
    answer.headers = headers
    return answer


def _few_enough(texts: Iterable[str]) -> Iterator[str]:
    """Yield *texts*, shortened and as many as fit when together they are too long."""
    shown = list(texts)
    if sum(map(len, shown)) <= _WARNING_LETTERS:
        yield from shown
        return
    left = _WARNING_LETTERS
    for text in shown:
        short = text[:_LETTERS_PER_WARNING]
        left -= len(short)
        if left < 0:
            return
        yield short
