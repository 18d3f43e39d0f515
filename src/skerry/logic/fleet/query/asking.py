"""From what a person types to the spec of a StatusQuery.

Short forms: ``--by location.labels.region`` is a column called ``region``, ``p99:status.millis``
the percentile of an expression, ``5:status.restarts`` the five greatest. ``name=`` before any of
them names the column.

    typed                          part of the spec  column        what it is
    --by location.labels.region    groupBy           region        its value
    --agg p99:status.millis        aggregates        p99           Percentile 99 of status.millis
    --top 5:status.restarts        aggregates        top_restarts  Top of status.restarts, k: 5
    --order-by region:desc         orderBy           region        descending

Only the short forms are read here. What is behind the colon is handed on as it is, and the hub says
whether it means anything; so an error in a short form names the flag, and comes before anybody is
asked. What was not typed is left out of the spec, and gets the hub's default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from skerry.api.objects import Object

_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(?!=)(.*)", re.DOTALL).fullmatch
_LAST_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").findall
_PERCENTILE = re.compile(r"p([0-9]{1,2}(\.[0-9]{1,6})?)").fullmatch
# Flags by the field of ``Asked`` that they fill; a resource is an argument.
_FLAGS: Final = {
    "rows": "--rows",
    "namespaces": "--namespace",
    "names": "--name",
    "placements": "--placement",
    "filter": "--filter",
    "by": "--by",
    "aggregates": "--agg",
    "top": "--top",
    "show": "--show",
    "select": "--select",
    "having": "--having",
    "order_by": "--order-by",
    "limit": "--limit",
    "stale_after": "--stale-after",
}
# Of these nothing would be left in the spec. ``having`` stays in it, and the hub refuses it.
_OF_GROUPS: Final = ("by", "aggregates", "top", "show")
_FUNCTIONS: Final = {"sum": "Sum", "min": "Min", "max": "Max", "avg": "Avg"}


class AskingError(ValueError):
    """What was typed is no question; the sentence says what was seen and what is wanted."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed.

    ``select`` asks for rows and not for groups, so ``by``, ``aggregates``, ``top`` and ``show`` are
    refused beside it.
    """

    group: str = ""
    resource: str = ""
    rows: str = "Copies"
    namespaces: Sequence[str] = ()
    names: Sequence[str] = ()
    placements: Sequence[str] = ()
    filter: str = ""
    by: Sequence[str] = ()
    aggregates: Sequence[str] = ()
    top: Sequence[str] = ()
    show: str = ""
    select: Sequence[str] = ()
    having: str = ""
    order_by: Sequence[str] = ()
    limit: int | None = None
    stale_after: str = ""


def flags_of(asked: Asked, names: Iterable[str] = _FLAGS) -> list[str]:
    """Return the flags by which something was typed; *names* are fields of ``Asked``."""
    nothing = Asked()
    return [_FLAGS[name] for name in names if getattr(asked, name) != getattr(nothing, name)]


def spec_of(asked: Asked) -> Object:
    """Return the spec of the query; ``AskingError`` when a short form is malformed.

    Rows of a group are counted unless something else is asked of it. A flag that would be of no
    effect is an error as well: whoever typed it would take the answer for another one.
    """
    _check_flags(asked)
    names = _Names()
    spec: Object = {"from": _source(asked)}
    if asked.select:
        spec["select"] = [_column(text, names) for text in asked.select]
    else:
        by = [_column(text, names) for text in asked.by]
        wanted = asked.aggregates or (() if asked.top else ("count",))
        aggregates = [_aggregate(text, names) for text in wanted]
        aggregates += [_top(text, asked.show, names) for text in asked.top]
        spec |= {**({"groupBy": by} if by else {}), "aggregates": aggregates}
    for name, value in (
        ("filter", asked.filter),
        ("having", asked.having),
        ("limit", asked.limit),
        ("staleAfter", asked.stale_after),
        ("orderBy", [_order(text) for text in asked.order_by]),
    ):
        if value:
            spec[name] = value
    return spec


def _check_flags(asked: Asked) -> None:
    if asked.select and (flags := flags_of(asked, _OF_GROUPS)):
        raise AskingError(f"--select shows rows and not groups: leave {', '.join(flags)} out")
    if asked.show and not asked.top:
        raise AskingError("--show is what --top shows beside each value: want --top K:EXPR too")


def _source(asked: Asked) -> Object:
    found: Object = {"rows": asked.rows}
    if asked.resource:
        found |= {"apiGroup": asked.group, "resources": [asked.resource]}
    for name, value in (
        ("namespaces", asked.namespaces),
        ("names", asked.names),
        ("placements", asked.placements),
    ):
        if value:
            found[name] = list(value)
    return found


class _Names:
    """Names of columns, no two alike: a query with two of one name is refused.

    The first keeps its name and the next is numbered (``region2``), given names as well as ours.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self._taken:
            name, number = f"{wanted}{number}", number + 1
        self._taken.add(name)
        return name


def _split(text: str) -> tuple[str, str]:
    """Return the name somebody gave a column, if they did, and the rest."""
    found = _NAMED(text)
    return (found[1], found[2]) if found else ("", text)


def _column(text: str, names: _Names) -> Object:
    name, expression = _split(text)
    return {"name": names.new(name or _word(expression, "value")), "value": expression}


def _aggregate(text: str, names: _Names) -> Object:
    name, rest = _split(text)
    function, colon, expression = rest.partition(":")
    if function == "count" and not colon:
        return {"name": names.new(name or "count"), "function": "Count"}
    percentile = _PERCENTILE(function)
    if not expression or (percentile is None and function not in _FUNCTIONS):
        wanted = "count, sum:EXPR, min:EXPR, max:EXPR, avg:EXPR or p99:EXPR"
        raise AskingError(f"--agg {text!r}: want {wanted}")
    found: Object = {"of": expression}
    if percentile is not None:
        number = float(percentile[1])
        found |= {"function": "Percentile"}
        found["percentile"] = int(number) if number.is_integer() else number
        return {"name": names.new(name or _identifier(function)), **found}
    usual = f"{function}_{_word(expression, 'value')}"
    return {"name": names.new(name or usual), "function": _FUNCTIONS[function], **found}


def _top(text: str, show: str, names: _Names) -> Object:
    name, rest = _split(text)
    number, _, expression = rest.partition(":")
    if not number.isascii() or not number.isdigit() or not expression:
        raise AskingError(f"--top {text!r}: want K:EXPR, such as 5:status.restarts")
    usual = f"top_{_word(expression, 'value')}"
    found: Object = {"name": names.new(name or usual), "function": "Top", "k": int(number)}
    return {**found, "of": expression, **({"show": show} if show else {})}


def _order(text: str) -> Object:
    name, _, direction = text.partition(":")
    if direction not in ("", "asc", "desc"):
        raise AskingError(f"--order-by {text!r}: want COLUMN, COLUMN:asc or COLUMN:desc")
    return {"column": name, **({"descending": True} if direction == "desc" else {})}


def _word(expression: str, otherwise: str) -> str:
    """Return the last word of a path, which is what people call it.

    What is no path (``a + b``, a call) has no such word, and is called *otherwise*.
    """
    words = _LAST_WORD(expression)
    return words[-1][:40] if words and re.fullmatch(r"[\w.?]+", expression) else otherwise


def _identifier(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", text)


def resource_named(
    text: str, served: Iterable[tuple[str, str, tuple[str, ...]]]
) -> tuple[str, str]:
    """Return group and resource of what somebody calls *text*.

    *served* are group, resource and other names. ``deployments.apps`` names the group as well, and
    is then taken at its word even if nothing of it is served here; without a group the first that
    is served under the name is meant.
    """
    name, dot, group = text.partition(".")
    found = [
        (each, resource)
        for each, resource, names in served
        if (name == resource or name in names) and (not dot or group == each)
    ]
    if found:
        return found[0]
    if dot:
        return group, name
    raise AskingError(
        f"{text!r}: no such resource is served here; name its group, as in {text}.apps"
    )
