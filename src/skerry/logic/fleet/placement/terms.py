"""What a selector demands, one term per label key.

All requirements on one key together say which values are welcome and whether the label may be
absent. Every LabelSelector operator, and every conjunction of them, has the same form: a finite
set of values or the complement of one, and a truth value for absence.

    In (a,b)      {a,b}              absent: no
    NotIn (a)     all but {a}        absent: yes
    Exists        all but {}         absent: no
    DoesNotExist  {}                 absent: yes

So equal demands compare equal however they were written, contradictions are visible, and both
directions of matching are a few set operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.errors import FieldError
from skerry.kit.invariant import invariant
from skerry.logic.machinery.selectors import (
    DOES_NOT_EXIST,
    DOUBLE_EQUALS,
    EQUALS,
    EXISTS,
    IN,
    NOT_EQUALS,
    NOT_IN,
    Labels,
    Requirement,
    Selector,
    SelectorError,
)

NO_VALUES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Term:
    """Welcome values of one label. With *complement*, ``values`` are the unwelcome ones."""

    values: frozenset[str]
    complement: bool
    absent: bool

    def admits(self, value: str | None) -> bool:
        """Tell whether *value* is welcome; None stands for an absent label."""
        if value is None:
            return self.absent
        return (value in self.values) != self.complement

    def __and__(self, other: Term) -> Term:
        absent = self.absent and other.absent
        if self.complement and other.complement:
            return Term(self.values | other.values, True, absent)
        if self.complement:
            return Term(other.values - self.values, False, absent)
        if other.complement:
            return Term(self.values - other.values, False, absent)
        return Term(self.values & other.values, False, absent)

    @property
    def impossible(self) -> bool:
        """Whether no value and no absence is welcome."""
        return not self.absent and not self.complement and not self.values

    def __str__(self) -> str:
        listed = ",".join(sorted(self.values))
        if not self.complement:
            text = f"in ({listed})" if self.values else "does not exist"
            return f"{text} or is absent" if self.absent and self.values else text
        if not self.values:
            return "is anything" if self.absent else "exists"
        return f"notin ({listed})" if self.absent else f"exists and notin ({listed})"


# The demands of one selector, by key, in order of keys. Hashable, so equal ones are shared.
Terms = tuple[tuple[str, Term], ...]


def terms_of(selector: Selector) -> Terms | None:
    """Return what *selector* demands; None for the one that matches nothing."""
    if selector.nothing:
        return None
    found: dict[str, Term] = {}
    for requirement in selector.requirements:
        term = _term(requirement)
        known = found.get(requirement.key)
        found[requirement.key] = term if known is None else known & term
    return tuple(sorted(found.items()))


def _term(requirement: Requirement) -> Term:
    values = frozenset(requirement.values)
    if requirement.operator in (IN, EQUALS, DOUBLE_EQUALS):
        return Term(values, complement=False, absent=False)
    if requirement.operator in (NOT_IN, NOT_EQUALS):
        return Term(values, complement=True, absent=True)
    if requirement.operator == EXISTS:
        return Term(NO_VALUES, complement=True, absent=False)
    # LabelSelector objects know no comparison of numbers; only queries do.
    invariant(requirement.operator == DOES_NOT_EXIST, f"operator {requirement.operator!r}")
    return Term(NO_VALUES, complement=False, absent=True)


def matches(terms: Terms, labels: Labels) -> bool:
    """Tell whether *labels* satisfy every term."""
    return all(term.admits(labels.get(key)) for key, term in terms)


def failing(terms: Terms, labels: Labels) -> list[tuple[str, Term]]:
    """Return the terms *labels* do not satisfy."""
    return [(key, term) for key, term in terms if not term.admits(labels.get(key))]


def contradictions(terms: Terms) -> list[str]:
    """Return the keys of which the impossible is demanded."""
    return [key for key, term in terms if term.impossible]


@dataclass(frozen=True, slots=True)
class Read:
    """A LabelSelector object as read: its terms, or what is wrong with it.

    ``terms`` None without errors is the missing selector, which matches nothing.
    """

    terms: Terms | None
    errors: tuple[str, ...] = ()


def read_selector(obj: Mapping[str, Any] | None, path: str) -> Read:
    """Read a LabelSelector object; *path* names it in error messages."""
    try:
        return Read(terms_of(Selector.from_label_selector(obj, path)))
    except SelectorError as error:
        return Read(None, tuple(map(_sentence, error.errors)))
    except (AttributeError, TypeError) as error:
        # A server without our schema may hand out anything at all.
        return Read(None, (f"{path}: not a label selector: {error}",))


def _sentence(error: FieldError) -> str:
    return str(error)
