"""No regular expression that reads what a client sent may backtrack more than linearly.

Python's engine tries every way in which repetitions can divide a text. Where two of them can
take the same characters one after the other, the number of ways grows with a power of the text's
length: 1.6 KB of zeros once kept a server busy for three seconds. RE2 runs the patterns that
clients write; those below are ours, and are checked here by their automata: there must be no two
states such that one text leads from the first to itself, from the first to the second, and from
the second to itself (Weber and Seidl's criterion for polynomial ambiguity).
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import skerry.api
import skerry.logic
import skerry.server

# Every character that a pattern may tell apart, and some that none names.
_ALPHABET = [chr(code) for code in range(128)] + list("µμ\u0660\u2028é")
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    constants.CATEGORY_DIGIT: str.isdigit,
    constants.CATEGORY_NOT_DIGIT: lambda c: not c.isdigit(),
    constants.CATEGORY_SPACE: str.isspace,
    constants.CATEGORY_NOT_SPACE: lambda c: not c.isspace(),
    constants.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
    constants.CATEGORY_NOT_WORD: lambda c: not (c.isalnum() or c == "_"),
}
_MANY = 3  # copies that stand for a bounded repetition: enough to be ambiguous where it can be

State = int
Characters = frozenset[str]


class Automaton:
    """The nondeterministic automaton of a pattern, without what looks around."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.empty: dict[State, list[State]] = {}
        self.moves: dict[State, list[tuple[Characters, State]]] = {}
        self._count = 0
        self._dotall = bool(flags & re.DOTALL)
        self._ignorecase = bool(flags & re.IGNORECASE)
        self._build(parser.parse(pattern, flags), self._state())

    def _state(self) -> State:
        self._count += 1
        self.empty[self._count], self.moves[self._count] = [], []
        return self._count

    def _build(self, items: Any, state: State) -> State:
        for operation, argument in items:
            state = self._one(operation, argument, state)
        return state

    def _one(self, operation: Any, argument: Any, state: State) -> State:
        if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT):
            minimum, maximum, items = argument
            return self._repeat(minimum, maximum, items, state)
        if operation is constants.SUBPATTERN:
            return self._build(argument[3], state)
        if operation is constants.BRANCH:
            end = self._state()
            for branch in argument[1]:
                self.empty[self._build(branch, state)].append(end)
            return end
        if operation in (constants.AT, constants.ASSERT, constants.ASSERT_NOT):
            return state
        end = self._state()
        self.moves[state].append((self._characters(operation, argument), end))
        return end

    def _repeat(self, minimum: int, maximum: Any, items: Any, state: State) -> State:
        for _ in range(min(minimum, _MANY)):
            state = self._build(items, state)
        if maximum == constants.MAXREPEAT:
            start, end = self._state(), self._state()
            self.empty[state].append(start)
            self.empty[start].append(end)
            self.empty[self._build(items, start)].append(start)
            return end
        end = self._state()
        self.empty[state].append(end)
        for _ in range(min(maximum - minimum, _MANY)):
            state = self._build(items, state)
            self.empty[state].append(end)
        return end

    def _characters(self, operation: Any, argument: Any) -> Characters:
        if operation is constants.LITERAL:
            return self._cased({chr(argument)})
        if operation is constants.NOT_LITERAL:
            return frozenset(_ALPHABET) - self._cased({chr(argument)})
        if operation is constants.ANY:
            return frozenset(c for c in _ALPHABET if self._dotall or c != "\n")
        assert operation is constants.IN, operation
        negated = argument[0][0] is constants.NEGATE
        found = {c for c in _ALPHABET if any(_within(c, *item) for item in argument[negated:])}
        return frozenset(_ALPHABET) - found if negated else self._cased(found)

    def _cased(self, found: set[str]) -> Characters:
        if self._ignorecase:
            found |= {c.swapcase() for c in found}
        return frozenset(found)

    def steps(self) -> dict[State, list[tuple[Characters, State]]]:
        """Return the moves that read one character, what is empty before it included."""
        return {
            state: [move for near in self._near(state) for move in self.moves[near]]
            for state in self.moves
        }

    def _near(self, state: State, passed: tuple[State, ...] = ()) -> Iterator[State]:
        """Yield what is reached without reading, once for each way to get there."""
        yield state
        for near in self.empty[state]:
            # A way may lead through a loop once more.
            if passed.count(near) < 2:
                yield from self._near(near, (*passed, state))


def _within(character: str, operation: Any, argument: Any) -> bool:
    if operation is constants.LITERAL:
        return bool(ord(character) == argument)
    if operation is constants.RANGE:
        return bool(argument[0] <= ord(character) <= argument[1])
    return _CATEGORIES[argument](character)


def ambiguous(pattern: str, flags: int = 0) -> bool:
    """Tell whether the ways to read a text grow faster than the text is long."""
    steps = Automaton(pattern, flags).steps()
    loops = {state for state in steps if _reaches(steps, state, state)}
    return any(
        _pumps(steps, first, second) for first in loops for second in loops if first != second
    ) or any(_twice(steps, state) for state in loops)


def _reaches(steps: dict[State, Any], start: State, goal: State) -> bool:
    seen: set[State] = set()
    waiting = [start]
    while waiting:
        for _, state in steps[waiting.pop()]:
            if state == goal:
                return True
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    return False


def _product(steps: dict[State, Any], start: tuple[State, ...], goal: tuple[State, ...]) -> bool:
    """Tell whether one text leads from each of *start* to its *goal* at once."""
    seen = {start}
    waiting = [start]
    while waiting:
        for following in _together(steps, waiting.pop()):
            if following == goal:
                return True
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return False


def _together(steps: dict[State, Any], states: tuple[State, ...]) -> Iterator[tuple[State, ...]]:
    partial: list[tuple[Characters, tuple[State, ...]]] = [(frozenset(_ALPHABET), ())]
    for state in states:
        partial = [
            (shared, (*sofar, following))
            for characters, sofar in partial
            for others, following in steps[state]
            if (shared := characters & others)
        ]
    for _, following in partial:
        yield following


def _pumps(steps: dict[State, Any], first: State, second: State) -> bool:
    return _reaches(steps, first, second) and _product(
        steps, (first, first, second), (first, second, second)
    )


def _twice(steps: dict[State, Any], state: State) -> bool:
    """Tell whether two different ways lead from *state* to itself over one text."""
    seen: set[tuple[State, State, bool]] = {(state, state, False)}
    waiting = [(state, state, False)]
    while waiting:
        left, right, apart = waiting.pop()
        for one, (characters, near) in enumerate(steps[left]):
            for other, (others, far) in enumerate(steps[right]):
                if not characters & others:
                    continue
                following = (near, far, apart or near != far or (left == right and one != other))
                if following[:2] == (state, state) and following[2]:
                    return True
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
    return False


# -- the patterns ------------------------------------------------------------------------------


def _modules() -> Iterator[Any]:
    for package in (skerry.api, skerry.logic, skerry.server):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield importlib.import_module(found.name)


# Made of what their callers pass, which is looked at below.
_MADE_OF_ARGUMENTS = {
    "skerry.logic.machinery.names": "pattern",
    "skerry.logic.machinery.schema.formats": "pattern",
    "skerry.logic.machinery.schema.decoding": "pattern",
    "skerry.server.workspaces.object_templates": "'|'.join(placeholders.all)",
}


def _patterns() -> Iterator[tuple[str, str, int]]:
    for module in _modules():
        with open(str(module.__file__), encoding="utf-8") as source:
            text = source.read()
        # Every worker reads this as it collects, and few modules have a pattern.
        for node in ast.walk(ast.parse(text)) if "re." in text else ():
            if isinstance(node, ast.Call) and _is_of_re(node.func):
                yield from _of_call(module, node)


def _is_of_re(function: ast.expr) -> bool:
    where = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(where, ast.Name) and where.id == "re"


def _of_call(module: Any, node: ast.Call) -> Iterator[tuple[str, str, int]]:
    text = ast.unparse(node.args[0])
    if _MADE_OF_ARGUMENTS.get(module.__name__) == text:
        return
    flags = [ast.unparse(word.value) for word in node.keywords if word.arg == "flags"]
    flags += [ast.unparse(a) for a in node.args[1:] if ast.unparse(a).startswith("re.")]
    pattern = eval(text, dict(vars(module)))
    number = eval(flags[0], dict(vars(module))) if flags else 0
    if isinstance(pattern, bytes):
        pattern = pattern.decode("latin-1")
    yield f"{module.__name__}:{node.lineno}", pattern, int(number)


def _named() -> Iterator[tuple[str, str, int]]:
    """Yield the patterns that functions are given."""
    from skerry.logic.machinery import names
    from skerry.logic.machinery.schema import decoding, formats

    for name in ("_SUBDOMAIN", "_DNS1035", "_WILDCARD", "_PERCENT",
                 "_HTTP_HEADER", "_HTTP_PATH", "_CONFIG_MAP_KEY"):  # fmt: skip
        yield f"skerry.logic.machinery.names.{name}", getattr(names, name), 0
    for pattern, piece in decoding._LAYOUT:
        yield f"skerry.logic.machinery.schema.decoding {piece}", pattern, 0
    for kind in (("[0-9a-f]{4}", "[0-9a-f]{4}"), ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}")):
        yield "skerry.logic.machinery.schema.formats uuid", formats._UUID % kind, re.IGNORECASE


PATTERNS = [*_patterns(), *_named()]


@pytest.mark.parametrize(
    ("pattern", "flags"), [(p, f) for _, p, f in PATTERNS], ids=[n for n, _, _ in PATTERNS]
)
def test_a_pattern_reads_any_text_in_few_ways(pattern: str, flags: int) -> None:
    assert not ambiguous(pattern, flags)


@pytest.mark.parametrize(
    "pattern",
    [
        r"0*[0-9]*x",
        r"([+-]?)0*([0-9]*)(?:(\.)([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)",
        r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|s))+",
        r"(a+)+b",
        r"(a|a)*b",
        r"(?:a*b?)*c",
        r"\s*x?\s*y",
    ],
)
def test_the_check_finds_patterns_that_backtrack(pattern: str) -> None:
    assert ambiguous(pattern)


@pytest.mark.parametrize(
    "pattern", [r"a*b*", r"(?:[^\"\\]|\\.)*", r"[a-z]([-a-z]*[a-z])?(\.[a-z]+)*"]
)
def test_the_check_lets_linear_patterns_pass(pattern: str) -> None:
    assert not ambiguous(pattern)
