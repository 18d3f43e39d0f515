r"""What the JSONPath of printer columns and selectable fields finds.

A path (``machinery/jsonpath.py``, kubectl's dialect) is read once into a function from an object
to values. ``.a.b``, ``['a']``, ``.a\.b`` (an escaped dot), ``[0]``, ``[-1]``, ``[1:3]``,
``[0,2]``, ``[*]``, ``..name``, ``['a','b']`` and filters such as ``[?(@.type=="Ready")].status``
are understood, as client-go understands them. A step that does not fit what it meets yields
nothing: a missing field must never fail a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

from skerry.kit.caching import short_text_cache
from skerry.logic.machinery.jsonpath import (
    KUBECTL,
    Descent,
    Every,
    Filter,
    Items,
    JSONPathError,
    Literal,
    Members,
    Number,
    Operand,
    Slice,
    Step,
    Union,
    parsed,
)

Search: TypeAlias = "Callable[[list[Any], _Budget], Iterator[Any]]"
Value: TypeAlias = "Callable[[Any, _Budget], list[Any]]"
Find: TypeAlias = Callable[[Any], list[Any]]

# Longer ones are nobody's columns. Filters may stand in filters, and each is read by itself.
MAX_LENGTH = 1024
MAX_FILTERS = 10
# A column that finds more in one object is left empty; a page has room for a few dozen characters.
MAX_VISITED = 3000


@short_text_cache(4096)
def compiled(path: str) -> Find:
    """Return what finds the values at *path* (``.spec.replicas``, braces optional)."""
    if len(path) > MAX_LENGTH or path.count("?") > MAX_FILTERS:
        raise JSONPathError(
            f"a path of {len(path)} characters: want {MAX_LENGTH} at most and {MAX_FILTERS} filters"
        )
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    searches = _searches(parsed(_rooted(text), KUBECTL))

    def find(value: Any) -> list[Any]:
        try:
            return _walked(searches, value, _Budget())
        except _Spent:
            return []

    return find


def _rooted(text: str) -> str:
    """Write out what kubectl lets people leave out: the root, and the dot before a first name."""
    if text[:1] in ("$", "@"):
        return text
    return f"${text}" if text[:1] in ("", ".", "[") else f"$.{text}"


def _walked(searches: list[Search], value: Any, budget: _Budget) -> list[Any]:
    found = [value]
    for search in searches:
        found = list(search(found, budget))
    return found


class _Spent(Exception):
    """A path has looked at more values than it may."""


class _Budget:
    """How many values a path may still look at in one object.

    Descents and unions of slices can find the same values again and again; each further one
    multiplies them.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_VISITED

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Spent

    def limited(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield *values*, each of which counts."""
        for value in values:
            self.spend()
            yield value


def _searches(steps: Iterable[Step]) -> list[Search]:
    return [_search(step) for step in steps]


def _search(step: Step) -> Search:
    match step:
        case Members(names):
            return _fields(names)
        case Every():
            return _every
        case Items(indexes):
            return _items(indexes)
        case Number(index):
            return _items((index,))
        case Slice(start, end, stride):
            return _slice(slice(start, end, stride))
        case Union(parts):
            return _union(_searches(parts))
        case Descent():
            return _descend
        case Filter(left, operator, right):
            return _filter(left, operator, right)


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _every(values: list[Any], budget: _Budget) -> Iterator[Any]:
    return (child for value in values for child in budget.limited(_children(value)))


def _fields(names: tuple[str, ...]) -> Search:
    return lambda values, budget: (
        value[name]
        for value in values
        if isinstance(value, dict)
        for name in budget.limited(names)
        if name in value
    )


def _items(indexes: tuple[int, ...]) -> Search:
    return lambda values, budget: (
        value[index]
        for value in values
        if isinstance(value, list)
        for index in budget.limited(indexes)
        if -len(value) <= index < len(value)
    )


def _slice(span: slice) -> Search:
    return lambda values, budget: (
        item
        for value in values
        if isinstance(value, list)
        for item in (value[at] for at in budget.limited(range(*span.indices(len(value)))))
    )


def _union(searches: list[Search]) -> Search:
    return lambda values, budget: (
        found for value in values for search in searches for found in search([value], budget)
    )


def _descend(values: list[Any], budget: _Budget) -> Iterator[Any]:
    """Find every value and everything inside it."""
    pending = list(reversed(values))
    while pending:
        budget.spend()
        value = pending.pop()
        yield value
        pending.extend(reversed(list(islice(_children(value), budget.left + 1))))


def _filter(left: Operand, operator: str, right: Operand) -> Search:
    one = _value(left)
    if not operator:
        return _kept(lambda item, budget: bool(one(item, budget)))
    return _kept(_comparison(operator, one, _value(right)))


def _kept(test: Callable[[Any, _Budget], bool]) -> Search:
    return lambda values, budget: (
        item
        for value in values
        if isinstance(value, list)
        for item in budget.limited(value)
        if test(item, budget)
    )


def _value(operand: Operand) -> Value:
    """Return what computes one side of a filter: a path from ``@`` or a literal."""
    if isinstance(operand, Literal):
        literal = [operand.value]
        return lambda *_: literal
    searches = _searches(operand)
    return lambda item, budget: _walked(searches, item, budget)


_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


def _comparison(operator: str, left: Value, right: Value) -> Callable[[Any, _Budget], bool]:
    compare = _ORDERINGS[operator]

    def test(item: Any, budget: _Budget) -> bool:
        one, other = left(item, budget), right(item, budget)
        if not one or not other:
            return False
        try:
            return compare(one[0], other[0])
        except TypeError:
            # Values of different types have no order.
            return False

    return test
