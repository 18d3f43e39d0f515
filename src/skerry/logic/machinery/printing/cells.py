"""The pieces most columns are made of.

A cell is a pure function of the object and the present time. Objects come from the store, where
a field may be absent or null; both read as nothing here, and each column says what nothing looks
like (``""``, ``0``, ``<none>`` or ``<unset>``: Kubernetes is not consistent and users know the
inconsistency by heart).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.printing.durations import since
from skerry.logic.machinery.resource import Column

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


def read(value: Any, *path: str) -> Any:
    """Return what lies at *path*; None when any step of it is absent or not an object."""
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def items(value: Any, *path: str) -> Sequence[Any]:
    """Return the list at *path*, an empty one when there is none."""
    found = read(value, *path)
    return found if isinstance(found, list) else ()


def number(value: Any, *path: str) -> int:
    """Return the whole number at *path*, zero when there is none, as Go's zero value would."""
    found = read(value, *path)
    return found if isinstance(found, int) else 0


def text(value: Any, *path: str) -> str:
    """Return what lies at *path* as text, empty when there is nothing."""
    found = read(value, *path)
    return "" if found is None else str(found)


def name_of(obj: Object) -> str:
    """Return the object's name."""
    return text(obj, "metadata", "name")


def is_terminating(obj: Object) -> bool:
    """Tell whether deletion has been asked for and waits for somebody."""
    return bool(read(obj, "metadata", "deletionTimestamp"))


def condition(obj: Any, kind: str, *path: str) -> Mapping[str, Any] | None:
    """Return the first condition of type *kind* in the list at *path* (``status.conditions``)."""
    for found in items(obj, *(path or ("status", "conditions"))):
        if read(found, "type") == kind:
            return found  # type: ignore[no-any-return]
    return None


def is_true(obj: Any, kind: str) -> bool:
    """Tell whether the condition *kind* holds; one that is absent does not."""
    return bool(read(condition(obj, kind), "status") == "True")


def labels_text(labels: Any) -> str:
    """Return ``key=value`` pairs in order, ``<none>`` for none."""
    if not isinstance(labels, Mapping):
        return NONE
    return ",".join(sorted(f"{key}={value}" for key, value in labels.items())) or NONE


_SET_OPERATORS = {"In": "in", "NotIn": "notin"}


def selector_terms(selector: Any) -> str:
    """Return a LabelSelector as the query string it means.

    Raises ``ValueError`` for an operator Kubernetes does not have.
    """
    terms = [
        (key, f"{key}={value}") for key, value in (read(selector, "matchLabels") or {}).items()
    ]
    terms += [
        (text(term, "key"), _expression(term)) for term in items(selector, "matchExpressions")
    ]
    return ",".join(shown for _, shown in sorted(terms, key=lambda term: term[0]))


def _expression(term: Any) -> str:
    key, operator = text(term, "key"), text(term, "operator")
    if operator == "Exists":
        return key
    if operator == "DoesNotExist":
        return f"!{key}"
    if operator not in _SET_OPERATORS:
        raise ValueError(f'"{operator}" is not a valid label selector operator')
    return f"{key} {_SET_OPERATORS[operator]} ({','.join(sorted(items(term, 'values')))})"


def selector_text(selector: Any) -> str:
    """Return a LabelSelector for display: ``<none>`` when empty, ``<error>`` when unreadable."""
    try:
        return selector_terms(selector) or NONE
    except ValueError:
        return "<error>"


def shortened(shown: Sequence[str], total: int, limit: int = 3) -> str:
    """Join at most *limit* of *shown* and say how many of *total* are not shown."""
    joined = ",".join(shown[:limit])
    return f"{joined} + {total - limit} more..." if total > limit else joined


def computed(
    name: str,
    cell: Callable[[Object], Any],
    description: str = "",
    *,
    type: str = "string",  # noqa: A002 - the word of TableColumnDefinition
    priority: int = 0,
) -> Column:
    """Return a column whose cell does not depend on the time."""
    return Column(name, type, lambda obj, _: cell(obj), "", description, priority)


def timed(
    name: str,
    cell: Callable[[Object, datetime], Any],
    description: str = "",
    *,
    priority: int = 0,
) -> Column:
    """Return a text column whose cell depends on the present time."""
    return Column(name, "string", cell, "", description, priority)


def field(
    name: str,
    *path: str,
    default: Any = "",
    type: str = "string",  # noqa: A002 - the word of TableColumnDefinition
    priority: int = 0,
    description: str = "",
) -> Column:
    """Return a column that shows the field at *path*, *default* when it is absent or null."""

    def cell(obj: Object) -> Any:
        found = read(obj, *path)
        return default if found is None else found

    shown = description or f"Taken from {'.'.join(path)}."
    return computed(name, cell, shown, type=type, priority=priority)


def integer(name: str, *path: str, description: str = "") -> Column:
    """Return a column of whole numbers, zero when the field is absent."""
    return field(name, *path, default=0, type="integer", description=description)


def flag(name: str, *path: str, default: bool = False) -> Column:
    """Return a column that is true or false."""
    return field(name, *path, default=default, type="boolean")


def size(name: str, *path: str, type: str = "string") -> Column:  # noqa: A002 - as above
    """Return a column that counts the members of a list or map."""
    shown = f"How many entries {'.'.join(path)} has."
    return computed(name, lambda obj: len(read(obj, *path) or ()), shown, type=type)


NAME = Column(
    "Name",
    "string",
    lambda obj, _: name_of(obj),
    "name",
    "The name of the object, unique among its kind within a namespace.",
)
AGE = timed(
    "Age",
    lambda obj, now: since(read(obj, "metadata", "creationTimestamp"), now),
    "How long ago the object was created.",
)
CREATED_AT = Column(
    "Created At",
    "date",
    lambda obj, _: text(obj, "metadata", "creationTimestamp"),
    "",
    "When the object was created.",
)


def container_columns(*template: str, priority: int = 1) -> tuple[Column, Column]:
    """Return the columns, wide ones mostly, that name a pod template's containers and images."""
    path = (*template, "spec", "containers")
    return (
        computed(
            "Containers",
            lambda obj: ",".join(text(container, "name") for container in items(obj, *path)),
            "Names of the containers in the template.",
            priority=priority,
        ),
        computed(
            "Images",
            lambda obj: ",".join(text(container, "image") for container in items(obj, *path)),
            "Images of the containers in the template.",
            priority=priority,
        ),
    )


def selector_column(*path: str) -> Column:
    """Return the wide column that shows a LabelSelector."""
    return computed(
        "Selector",
        lambda obj: selector_text(read(obj, *path)),
        "Which pods are meant.",
        priority=1,
    )
