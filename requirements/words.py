"""Refuses words that this repository has given up: ``python requirements/words.py``.

The list is ``words.toml``, with what to say instead and why. It is applied to

* names: every identifier of Python and JavaScript, by its parts (``told_first``,
  ``TellingExecutor``), and the names of files;
* prose: docstrings, comments, the pages of ``docs`` and ``changes``, but for what they quote as
  code;
* messages: every other string, and what a scenario runs and prints.

What is defined elsewhere (``dict.most_common``) is excepted where the word is listed. A folder in
``[not_yet]`` still has retired words, at most as many as it says; the number only goes down.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("words.toml")
FOLDERS = ("src", "tests", "bench", "requirements", "docs", "changes", "README.md", "SECURITY.md")
_SUFFIXES = (".py", ".md", ".js", ".txt")
# Decisions are history: they keep the words they were made in. The others are about the words.
LEFT_OUT = (
    "docs/adr/",
    "requirements/words.py",
    "tests/unit/docs/test_words.py",
    "src/skerry/web/static/vendor/",
)
# Of texts only scenarios are ours to word; the others are data.
_SCENARIOS = "tests/scenarios/"
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORDS = re.compile(r"[A-Za-z]+")
# A comment, a string or a name, as far as one line shows.
_SCRIPT = re.compile(
    r"""//.*|/\*.*|^\s*\*.*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|[A-Za-z_$][\w$]*"""
)
_CODE = re.compile(r"``[^`]*``|`[^`]*`|\btest_\w+")


@dataclass(frozen=True, slots=True)
class Retired:
    """One word, and what to say instead."""

    word: str
    say: str
    reason: str
    where: frozenset[str]
    excepted: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    path: str
    line: int
    text: str
    retired: Retired

    def __str__(self) -> str:
        word, say, reason = self.retired.word, self.retired.say, self.retired.reason
        return f"{self.path}:{self.line}: {self.text!r}: {word} is retired: {reason}; say {say}"


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a file: a name, prose or a message."""

    kind: str
    line: int
    text: str
    # Of a name that is an attribute: whose, as far as that is a name.
    of: str = ""

    def words(self) -> list[str]:
        """Return its words in lower case; of a name also the whole, after an equals sign."""
        if self.kind == "names":
            return [*map(str.lower, _PARTS.findall(self.text)), f"={self.text}"]
        plain = _CODE.sub(" ", self.text) if self.kind == "prose" else self.text
        return _WORDS.findall(plain.lower())


def load(text: str) -> tuple[dict[str, list[Retired]], dict[str, int]]:
    """Return the entries of each retired word, and how many each folder may still have."""
    raw: Mapping[str, Any] = tomllib.loads(text)
    found: dict[str, list[Retired]] = {}
    for entry in raw["word"]:
        excepted = tuple(map(re.compile, entry.get("except", ())))
        # A name that is retired as a whole is marked, for its parts may be good words.
        for word in [*entry.get("retired", ()), *(f"={name}" for name in entry.get("names", ()))]:
            retired = Retired(
                word, entry["say"], entry["reason"], frozenset(entry["where"]), excepted
            )
            found.setdefault(word, []).append(retired)
    return found, dict(raw.get("not_yet", {}))


def python_texts(source: str) -> Iterator[Text]:
    """Yield names, prose and messages of a module; names inside f-strings count as its text."""
    before = ("", "")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            of = before[0] if before[1] == "." else ""
            yield Text("names", token.start[0], token.string, of)
        elif token.type == tokenize.COMMENT:
            yield Text("prose", token.start[0], token.string)
        elif token.type == tokenize.STRING:
            kind = "prose" if token.string.lstrip("rR").startswith('"""') else "messages"
            for number, line in enumerate(token.string.splitlines()):
                yield Text(kind, token.start[0] + number, line)
        before = (before[1], token.string)


def script_texts(source: str) -> Iterator[Text]:
    """Yield names, prose and messages of a JavaScript module."""
    for number, line in enumerate(source.splitlines(), 1):
        for found in _SCRIPT.findall(line):
            kind = "messages" if found[0] in "\"'`" else "names"
            yield Text("prose" if found.lstrip()[0] in "/*" else kind, number, found)


def scenario_texts(source: str) -> Iterator[Text]:
    """Yield the remarks of a scenario as prose, and its commands and output as messages."""
    for number, line in enumerate(source.splitlines(), 1):
        yield Text("prose" if line.startswith("#") else "messages", number, line)


def texts(path: str, source: str) -> Iterator[Text]:
    """Yield everything in a file that words are looked for in."""
    yield Text("names", 1, Path(path).stem)
    if path.endswith(".py"):
        yield from python_texts(source)
    elif path.endswith(".js"):
        yield from script_texts(source)
    elif path.endswith(".txt"):
        yield from scenario_texts(source)
    else:
        for number, line in enumerate(source.splitlines(), 1):
            yield Text("prose", number, line)


def findings(path: str, source: str, retired: Mapping[str, list[Retired]]) -> Iterator[Finding]:
    """Yield each use of a retired word."""
    for text in texts(path, source):
        for word in retired.keys() & text.words():
            for entry in retired[word]:
                shown = f"{text.of}.{text.text}" if text.of else text.text
                if text.kind in entry.where and not any(
                    each.search(text.text) or each.search(shown) for each in entry.excepted
                ):
                    yield Finding(path, text.line, text.text.strip()[:80], entry)


def files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and content of every file that is looked at."""
    for folder in FOLDERS:
        start = root / folder
        for path in [start] if start.is_file() else sorted(start.rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in _SUFFIXES or name.startswith(LEFT_OUT):
                continue
            if path.suffix != ".txt" or name.startswith(_SCENARIOS):
                yield name, path.read_text(encoding="utf-8")


def judged(found: Iterable[Finding], not_yet: Mapping[str, int]) -> list[str]:
    """Return what is wrong: findings outside of *not_yet*, and numbers there that do not hold."""
    wrong, counts = [], Counter[str]()
    for finding in found:
        folder = next((each for each in not_yet if finding.path.startswith(each)), None)
        if folder is None:
            wrong.append(str(finding))
        else:
            counts[folder] += 1
    for folder, allowed in not_yet.items():
        if counts[folder] > allowed:
            wrong.append(f"{folder}: {counts[folder]} retired words: want at most {allowed}")
    return wrong


def main() -> int:
    """Print what is wrong; return the exit code."""
    retired, not_yet = load(LIST.read_text(encoding="utf-8"))
    root = LIST.parents[1]
    found = [each for name, text in files(root) for each in findings(name, text, retired)]
    wrong = judged(found, not_yet)
    for line in wrong:
        sys.stdout.write(f"{line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
