"""JSON Patch (RFC 6902) as kube-apiserver 1.32 does it.

The apiserver's library departs from the RFC in ways clients have come to rely on, and so do we:
``replace`` of an absent member sets it; ``copy`` from an absent member copies ``null``; ``test``
of an absent member against ``null`` passes; negative indices count from the end.

Every failure to apply is one and the same 422 on the wire; the precise reason travels as the
exception's cause, for logs. Containers are copied the first time an operation changes them and
changed in place afterwards, so ten thousand operations on one list copy it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from skerry.api.errors import BadRequest, Invalid, RequestEntityTooLarge
from skerry.api.objects import Object
from skerry.logic.machinery.patch.values import equal, json_kind

# Both figures are kube-apiserver's: a patch is parsed before any quota is asked, so its work and
# the growth it can cause by copying must be bounded here.
MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

# An element put into a list moves those behind it. Ten thousand operations at the head of a list of
# a thousand elements come to half of this, which takes a few milliseconds.
MAX_MOVED_ELEMENTS: Final = 10_000_000

_MISSING: Final = object()

Container = dict[str, Any] | list[Any]


class PatchFailed(Exception):
    """One operation could not be done; the message says which and why."""


def apply_json_patch(obj: Object, operations: Any) -> Object:
    """Return *obj* with every operation done, or raise with none of them visible."""
    checked = _checked(operations)
    document = _Document(obj)
    try:
        for operation in checked:
            document.do(operation)
        result = document.finish()
    except PatchFailed as failure:
        raise Invalid("the server rejected our request due to an error in our request") from failure
    return result


def _checked(operations: Any) -> list[dict[str, Any]]:
    """Return *operations* if they have the form of a patch; their sense is checked later."""
    if not isinstance(operations, list):
        raise _undecodable(json_kind(operations), "value of type []handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, dict):
            raise _undecodable(json_kind(operation), "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = operation.get(name)
            if value is not None and not isinstance(value, str):
                target = f"struct field jsonPatchOp.{name} of type string"
                raise _undecodable(json_kind(value), target)
    if len(operations) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}"
        )
    return operations


def _undecodable(kind: str, target: str) -> BadRequest:
    return BadRequest(f"error decoding patch: json: cannot unmarshal {kind} into Go {target}")


def pointer_tokens(pointer: str) -> list[str]:
    """Return the reference tokens of a JSON pointer (RFC 6901), unescaped."""
    if not pointer:
        return []
    if pointer[0] != "/":
        raise PatchFailed(f"path {pointer!r}: want a JSON pointer that starts with '/'")
    tokens = pointer[1:].split("/")
    if "~" not in pointer:
        return tokens
    # ~1 first: "~01" is the name "~1", not "/".
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens]


class _Document:
    """The object under change, and which of its containers are already our own copies."""

    def __init__(self, root: Object) -> None:
        self._root: Any = root
        # By identity; the values keep the containers alive so that no identity is reused.
        self._owned: dict[int, Container] = {}
        self._copied_bytes = 0
        self._moved_elements = 0
        self._operations: dict[str, Callable[[dict[str, Any]], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def do(self, operation: dict[str, Any]) -> None:
        kind = operation.get("op")
        perform = self._operations.get(kind) if isinstance(kind, str) else None
        if perform is None:
            raise PatchFailed(f"Unexpected kind: {kind or 'unknown'}")
        perform(operation)

    def finish(self) -> Object:
        if not isinstance(self._root, dict):
            raise PatchFailed("the patch makes something other than an object")
        # Operations can nest values more deeply than any of them is nested.
        _encoded(self._root)
        return self._root

    def _add(self, operation: dict[str, Any]) -> None:
        self._insert(_pointer(operation, "path"), operation.get("value"))

    def _remove(self, operation: dict[str, Any]) -> None:
        self._take(_pointer(operation, "path"))

    def _replace(self, operation: dict[str, Any]) -> None:
        tokens = _pointer(operation, "path")
        value = operation.get("value")
        if not tokens:
            self._root = value
            return
        container = self._own_parent(tokens)
        if isinstance(container, dict):
            container[tokens[-1]] = value
        else:
            container[_index(tokens[-1], len(container))] = value

    def _move(self, operation: dict[str, Any]) -> None:
        source, target = _pointer(operation, "from"), _pointer(operation, "path")
        if len(source) < len(target) and target[: len(source)] == source:
            raise PatchFailed("move operation does not apply: a value cannot move into itself")
        self._insert(target, self._take(source))

    def _copy(self, operation: dict[str, Any]) -> None:
        value = self._value_at(_pointer(operation, "from"))
        if isinstance(value, dict | list):
            encoded = _encoded(value)
            self._copied_bytes += len(encoded)
            if self._copied_bytes > MAX_COPIED_BYTES:
                raise PatchFailed(
                    "Unable to complete the copy, the accumulated size increase of copy is "
                    f"{self._copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
                )
            value = orjson.loads(encoded)
        self._insert(_pointer(operation, "path"), None if value is _MISSING else value)

    def _test(self, operation: dict[str, Any]) -> None:
        tokens = _pointer(operation, "path")
        found = self._value_at(tokens)
        if not equal(None if found is _MISSING else found, operation.get("value")):
            raise PatchFailed(f"testing value {operation['path']} failed")

    def _insert(self, tokens: list[str], value: Any) -> None:
        if not tokens:
            self._root = value
            return
        container = self._own_parent(tokens)
        last = tokens[-1]
        if isinstance(container, dict):
            container[last] = value
        elif last == "-":
            container.append(value)
        else:
            index = _index(last, len(container) + 1)
            self._moves(len(container) - index)
            container.insert(index, value)

    def _moves(self, elements: int) -> None:
        self._moved_elements += elements
        if self._moved_elements > MAX_MOVED_ELEMENTS:
            raise RequestEntityTooLarge(
                "The allowed maximum of elements that a JSON patch moves within lists is "
                f"{MAX_MOVED_ELEMENTS}"
            )

    def _take(self, tokens: list[str]) -> Any:
        if not tokens:
            raise PatchFailed("the whole document can be replaced, not removed")
        container = self._own_parent(tokens)
        last = tokens[-1]
        if isinstance(container, list):
            index = _index(last, len(container))
            self._moves(len(container) - index)
            return container.pop(index)
        if last not in container:
            raise PatchFailed(f"Unable to remove nonexistent key: {last}")
        return container.pop(last)

    def _value_at(self, tokens: list[str]) -> Any:
        """Return the value found; an absent member of an object that exists is ``_MISSING``."""
        value = self._root
        for token in tokens:
            if not isinstance(value, dict | list):
                raise PatchFailed(f"doc is missing path: /{'/'.join(tokens)}")
            value = _member(value, token)
        return value

    def _own_parent(self, tokens: list[str]) -> Container:
        """Return the container of the last token, it and all above it being our own copies."""
        container = self._root = self._own(self._root, tokens)
        for token in tokens[:-1]:
            child = self._own(_member(container, token), tokens)
            if isinstance(container, dict):
                container[token] = child
            else:
                container[_index(token, len(container))] = child
            container = child
        return container

    def _own(self, value: Any, tokens: list[str]) -> Container:
        if id(value) in self._owned:
            return self._owned[id(value)]
        if not isinstance(value, dict | list):
            raise PatchFailed(f"doc is missing path: /{'/'.join(tokens)}")
        copy: Container = value.copy()
        self._owned[id(copy)] = copy
        return copy


def _pointer(operation: dict[str, Any], name: str) -> list[str]:
    pointer = operation.get(name)
    if pointer is None:
        raise PatchFailed(f"{operation['op']} operation failed to decode {name}")
    return pointer_tokens(pointer)


def _member(container: Any, token: str) -> Any:
    if isinstance(container, dict):
        return container.get(token, _MISSING)
    if isinstance(container, list):
        return container[_index(token, len(container))]
    return _MISSING


def _index(token: str, length: int) -> int:
    """Return the position *token* names in a list of *length*, counting back when negative."""
    digits = token[1:] if token[:1] in ("-", "+") else token
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(length)) + 20:
        raise PatchFailed(f"value was not a proper array index: {token!r}")
    index = int(token)
    if index < 0:
        index += length
    if not 0 <= index < length:
        raise PatchFailed(f"Unable to access invalid index: {token}")
    return index


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise PatchFailed(f"the patch makes a value that cannot be encoded: {error}") from error
