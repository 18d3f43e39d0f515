"""Label and field selectors: the query grammar, the LabelSelector object, and fast matching.

A selector is a conjunction. Two things surprise: an absent label satisfies ``!=`` and ``notin``,
and a *missing* LabelSelector object matches nothing although an *empty* one matches everything.
Selectors are compared by what they say, and ``parse(str(selector))`` says the same again.

Matching is what lists and watches do for every object, so a selector is compiled once into
closures over plain strings and frozen sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from skerry.api.errors import FieldError, shown
from skerry.logic.machinery.names import label_value, qualified_name

Labels = Mapping[str, str]
_Check = Callable[[Labels], bool]

EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
IN: Final = "in"
NOT_IN: Final = "notin"
EXISTS: Final = "exists"
DOES_NOT_EXIST: Final = "!"
GREATER_THAN: Final = "gt"
LESS_THAN: Final = "lt"

# Each is compared with every object of a list, and of a watch. Programs that select many objects
# list the values of one key, which is one requirement however many there are.
MAX_REQUIREMENTS: Final = 100

_BINARY = (IN, NOT_IN, EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER_THAN, LESS_THAN)
_SYMBOLS = {">": GREATER_THAN, "<": LESS_THAN}
_WRITTEN = {GREATER_THAN: ">", LESS_THAN: "<", IN: " in ", NOT_IN: " notin "}


class SelectorError(ValueError):
    """A selector that cannot be understood; ``errors`` name fields when an object was read."""

    def __init__(self, message: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(message)
        self.errors: tuple[FieldError, ...] = tuple(errors)


class Requirement(NamedTuple):
    """One condition; ``values`` are sorted and without repetition."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == DOES_NOT_EXIST:
            return "!" + self.key
        listed = ",".join(self.values)
        if self.operator in (IN, NOT_IN):
            listed = f"({listed})"
        return self.key + _WRITTEN.get(self.operator, self.operator) + listed


class Selector:
    """A conjunction of requirements on labels."""

    __slots__ = ("_checks", "nothing", "requirements")

    def __init__(self, requirements: Sequence[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements: tuple[Requirement, ...] = tuple(
            sorted(requirements, key=lambda requirement: requirement.key)
        )
        # True for the selector of a missing LabelSelector, which no labels satisfy.
        self.nothing = nothing
        self._checks: tuple[_Check, ...] = tuple(map(_compiled, self.requirements))

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Read the grammar of ``labelSelector`` queries: ``a=b,c in (d,e),!f,g>3``."""
        return cls(_Parser(text).requirements())

    @classmethod
    def from_labels(cls, labels: Labels | None) -> Selector:
        """Return the selector of a plain map, as Services and ReplicationControllers have it.

        Nothing is validated; an empty or missing map matches everything.
        """
        return cls([Requirement(key, EQUALS, (value,)) for key, value in (labels or {}).items()])

    @classmethod
    def from_label_selector(cls, obj: Mapping[str, Any] | None, path: str = "") -> Selector:
        """Read a LabelSelector object (``matchLabels``, ``matchExpressions``)."""
        if obj is None:
            return cls(nothing=True)
        errors = label_selector_errors(obj, path)
        if errors:
            raise SelectorError("; ".join(map(str, errors)), errors)
        found = [
            Requirement(key, EQUALS, (value,))
            for key, value in (obj.get("matchLabels") or {}).items()
        ]
        found += [_expressed(item) for item in obj.get("matchExpressions") or ()]
        return cls(found)

    @property
    def empty(self) -> bool:
        """Whether everything is selected."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Labels | None) -> bool:
        """Tell whether *labels* satisfy every requirement."""
        if labels is None:
            labels = {}
        for check in self._checks:
            if not check(labels):
                return False
        return not self.nothing

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.requirements == other.requirements and self.nothing == other.nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "Selector(nothing)" if self.nothing else f"Selector({self})"


_INTEGER = re.compile(r"[+-]?[0-9]+").fullmatch


def _integer(text: str) -> int | None:
    """Return the 64-bit integer *text* writes, nothing when it writes none."""
    if _INTEGER(text) is None or len(text) > 20:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _compiled(requirement: Requirement) -> _Check:
    """Return the requirement as a function of labels."""
    key, operator, values = requirement
    if operator in (EQUALS, DOUBLE_EQUALS, IN):
        return _equal(key, values[0]) if len(values) == 1 else _in(key, frozenset(values))
    if operator in (NOT_EQUALS, NOT_IN):
        unwanted = frozenset(values)
        return lambda labels: labels.get(key) not in unwanted
    if operator == EXISTS:
        return lambda labels: key in labels
    if operator == DOES_NOT_EXIST:
        return lambda labels: key not in labels
    return _ordered(key, operator, values[0])


def _equal(key: str, value: str) -> _Check:
    return lambda labels: labels.get(key) == value


def _in(key: str, wanted: frozenset[str]) -> _Check:
    return lambda labels: labels.get(key) in wanted


def _ordered(key: str, operator: str, limit_text: str) -> _Check:
    """Return an integer comparison; a label that is no integer satisfies neither direction."""
    limit = _integer(limit_text)
    sign = 1 if operator == GREATER_THAN else -1

    def check(labels: Labels) -> bool:
        number = _integer(labels.get(key, ""))
        return number is not None and limit is not None and (number - limit) * sign > 0

    return check


# Whitespace is what Go's lexer skips; any other control character belongs to an identifier and
# is refused with it.
_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|\Z)")
_SPECIAL = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))


class _Parser:
    """A recursive descent over the tokens; the empty word ends the text."""

    def __init__(self, text: str) -> None:
        # Every text is a sequence of tokens; only its end is an empty one.
        self._tokens: list[str] = [*filter(None, _TOKEN.findall(text)), ""]
        self._position = 0

    def _next(self) -> str:
        word = self._tokens[self._position]
        # The end of the text stays where it is, however often it is asked for.
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return word

    @property
    def _ahead(self) -> str:
        return self._tokens[self._position]

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if not self._ahead:
            return found
        while True:
            if self._ahead in _SPECIAL and self._ahead != "!":
                raise SelectorError(
                    f"found '{self._ahead}', expected: !, identifier, or 'end of string'"
                )
            found.append(self._requirement())
            if len(found) > MAX_REQUIREMENTS:
                raise SelectorError(
                    f"more than {MAX_REQUIREMENTS} requirements: want fewer; values of one key may "
                    "be listed with in (...)"
                )
            if not self._separated():
                return found

    def _separated(self) -> bool:
        """Consume what follows a requirement; tell whether another one must come."""
        word = self._next()
        if not word:
            return False
        if word != ",":
            raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
        if self._ahead in _SPECIAL and self._ahead != "!":
            raise SelectorError(f"found '{self._ahead}', expected: identifier after ','")
        return True

    def _requirement(self) -> Requirement:
        try:
            return self._parsed_requirement()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from error

    def _parsed_requirement(self) -> Requirement:
        key, negated = self._key()
        if negated:
            return _required(key, DOES_NOT_EXIST, ())
        if self._ahead in ("", ","):
            return _required(key, EXISTS, ())
        return self._binary(key)

    def _key(self) -> tuple[str, bool]:
        word = self._next()
        negated = word == "!"
        if negated:
            word = self._next()
        if word in _SPECIAL:
            raise SelectorError(f"found '{word}', expected: identifier")
        wrong = qualified_name(word)
        if wrong:
            raise SelectorError(f"<nil>: Invalid value: {shown(word)}: {'; '.join(wrong)}")
        return word, negated

    def _binary(self, key: str) -> Requirement:
        word = self._next()
        operator = _SYMBOLS.get(word, word)
        if operator not in _BINARY or word in (GREATER_THAN, LESS_THAN):
            raise SelectorError(f"found '{word}', expected: {', '.join(_BINARY)}")
        values = self._set() if operator in (IN, NOT_IN) else [self._exact()]
        return _required(key, operator, values)

    def _exact(self) -> str:
        if self._ahead in ("", ","):
            return ""
        word = self._next()
        if word in _SPECIAL:
            raise SelectorError(f"found '{word}', expected: identifier")
        return word

    def _set(self) -> list[str]:
        """Read ``(a,b)``; an empty place between commas is the empty value."""
        word = self._next()
        if word != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        if self._ahead in _SPECIAL and self._ahead not in (",", ")"):
            raise SelectorError(f"found '{self._ahead}', expected: ',', ')' or identifier")
        plain = self._plain_set()
        if plain:
            return plain
        values: list[str] = []
        while True:
            values.append(self._element())
            word = self._next()
            if word == ")":
                return values
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or ')'")

    def _plain_set(self) -> list[str]:
        """Read the rest of a set that is identifiers and commas in turn; else read nothing."""
        try:
            end = self._tokens.index(")", self._position)
        except ValueError:
            return []
        values = self._tokens[self._position : end : 2]
        commas = self._tokens[self._position + 1 : end : 2]
        if len(values) == len(commas) or set(commas) - {","} or not _SPECIAL.isdisjoint(values):
            return []
        self._position = end + 1
        return values

    def _element(self) -> str:
        if self._ahead in (",", ")"):
            return ""
        word = self._next()
        if word in _SPECIAL:
            raise SelectorError(f"found '{word}', expected: ',', or identifier")
        return word


def _required(key: str, operator: str, values: Sequence[str]) -> Requirement:
    """Return a requirement whose values have been checked as labels are."""
    ordered = tuple(sorted(set(values)))
    errors = []
    if operator in (GREATER_THAN, LESS_THAN) and _integer(ordered[0]) is None:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors.append(FieldError.invalid("values[0]", ordered[0], detail))
    for index, value in enumerate(ordered):
        wrong = label_value(value)
        if wrong:
            field = f"values[{index}][{key}]"
            errors.append(FieldError.invalid(field, value, "; ".join(wrong)))
    if errors:
        text = ", ".join(map(str, errors))
        raise SelectorError(f"[{text}]" if len(errors) > 1 else text, errors)
    return Requirement(key, operator, ordered)


_EXPRESSIONS = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}


def _expressed(item: Mapping[str, Any]) -> Requirement:
    values = tuple(sorted(set(item.get("values") or ())))
    return Requirement(item["key"], _EXPRESSIONS[item["operator"]], values)


def label_selector_errors(obj: Mapping[str, Any] | None, path: str = "") -> list[FieldError]:
    """Return what is wrong with a LabelSelector object, by the fields at fault."""
    if not obj:
        return []
    prefix = f"{path}." if path else ""
    errors = label_errors(obj.get("matchLabels"), f"{prefix}matchLabels")
    expressions = obj.get("matchExpressions") or ()
    count = len(obj.get("matchLabels") or ()) + len(expressions)
    if count > MAX_REQUIREMENTS:
        field = f"{prefix}matchExpressions" if expressions else f"{prefix}matchLabels"
        return [*errors, FieldError.too_many(field, count, MAX_REQUIREMENTS)]
    for index, item in enumerate(obj.get("matchExpressions") or ()):
        errors += _expression_errors(item, f"{prefix}matchExpressions[{index}]")
    return errors


def label_errors(labels: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    """Return what is wrong with a map of labels."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        if wrong := qualified_name(key):
            errors += [FieldError.invalid(path, key, text) for text in wrong]
        if value and (wrong := label_value(value)):
            errors += [FieldError.invalid(path, value, text) for text in wrong]
    return errors


def _expression_errors(item: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    operator, values = item.get("operator") or "", item.get("values") or ()
    if operator in ("In", "NotIn") and not values:
        text = "must be specified when `operator` is 'In' or 'NotIn'"
        errors.append(FieldError.required(f"{path}.values", text))
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(FieldError.forbidden(f"{path}.values", text))
    elif operator not in _EXPRESSIONS:
        text = "not a valid selector operator"
        errors.append(FieldError.invalid(f"{path}.operator", operator, text))
    key = item.get("key") or ""
    errors += [FieldError.invalid(f"{path}.key", key, text) for text in qualified_name(key)]
    for index, value in enumerate(values):
        field = f"{path}.values[{index}]"
        errors += [FieldError.invalid(field, value, text) for text in label_value(value)]
    return errors


class FieldTerm(NamedTuple):
    """One condition on a field: ``operator`` is ``=`` or ``!=``."""

    field: str
    operator: str
    value: str

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{self.operator}{value}"


class FieldSelector:
    """A conjunction of comparisons of fields with text."""

    __slots__ = ("terms",)

    def __init__(self, terms: Sequence[FieldTerm] = ()) -> None:
        self.terms: tuple[FieldTerm, ...] = tuple(terms)

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """Read ``a=b,c!=d``; in values ``\\,``, ``\\=`` and ``\\\\`` stand for themselves."""
        parts = [part for part in sorted(_split(text)) if part]
        if len(parts) > MAX_REQUIREMENTS:
            raise SelectorError(f"more than {MAX_REQUIREMENTS} terms in a field selector")
        return cls([_term(part, text) for part in parts])

    @property
    def empty(self) -> bool:
        """Whether everything is selected."""
        return not self.terms

    def exact(self, field: str) -> str | None:
        """Return the value *field* must have, if the selector pins one."""
        return next(
            (term.value for term in self.terms if term.field == field and term.operator == "="),
            None,
        )

    def matches(self, get: Callable[[str], str]) -> bool:
        """Tell whether the fields, as *get* reads them, satisfy every term."""
        for field, operator, value in self.terms:
            if (get(field) == value) != (operator == EQUALS):
                return False
        return True

    def __eq__(self, other: object) -> bool:
        return self.terms == other.terms if isinstance(other, FieldSelector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.terms)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))

    def __repr__(self) -> str:
        return f"FieldSelector({self})"


_PARTS = re.compile(r"(?:\\.|[^,\\])*(?:\\\Z)?", re.DOTALL)


def _split(text: str) -> list[str]:
    """Split at commas that no backslash protects."""
    parts, position = [], 0
    while position <= len(text):
        found = _PARTS.match(text, position)
        end = found.end() if found else len(text)
        parts.append(text[position:end])
        position = end + 1
    return parts


_OPERATOR = re.compile("!=|==|=")


def _term(part: str, whole: str) -> FieldTerm:
    found = _OPERATOR.search(part)
    if found is None:
        raise SelectorError(f"invalid selector: '{whole}'; can't understand '{part}'")
    operator = NOT_EQUALS if found[0] == NOT_EQUALS else EQUALS
    return FieldTerm(part[: found.start()], operator, _unescaped(part[found.end() :]))


def _unescaped(text: str) -> str:
    value, characters = [], iter(text)
    for char in characters:
        if char == "\\":
            escaped = next(characters, "")
            if not escaped or escaped not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            value.append(escaped)
        elif char in ",=":
            # Kubernetes prints the character's number here.
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(char)}"
            )
        else:
            value.append(char)
    return "".join(value)
