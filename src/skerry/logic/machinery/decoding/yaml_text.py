"""YAML text into values that JSON can represent, composed without recursion.

libyaml's parser turns text into events with a state machine; it needs no recursion and takes time
linear in the text, save for two inputs: nesting in flow style, and ``%TAG`` lines, which are
limited here before they matter. Its composer, and PyYAML's constructors, recurse and expand
aliases, and are not used: the events are composed here, on a stack of our own, and what an alias
or a merge key would repeat is counted before it is copied.

Copies share nothing, because later steps change objects in place.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from skerry.logic.machinery.decoding.limits import (
    DEFAULT_LIMITS,
    DecodeError,
    LimitExceeded,
    Limits,
)
from skerry.logic.machinery.decoding.scalars import (
    UNREPRESENTABLE,
    as_json_number,
    as_key,
    resolved,
)

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
# libyaml would read it, and find more in it than the bytes show.
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
# What a mapping waits for where it does not wait for the value of a key.
_A_KEY: Final = object()
_MERGE_SOURCES: Final = object()


@dataclass(slots=True)
class _Anchored:
    """What an anchor names. ``nodes`` and ``size`` are what repeating it costs, ``height`` is how
    many levels it adds."""

    value: Any = None
    nodes: int = 0
    size: int = 0
    height: int = 0
    complete: bool = False


@dataclass(slots=True)
class _Frame:
    """A list or mapping whose end has not been read."""

    value: list[Any] | dict[str, Any]
    anchored: _Anchored | None
    nodes_before: int
    size_before: int
    height: int = 1
    key: Any = _A_KEY
    merged: list[dict[str, Any]] = field(default_factory=list)


# So many keys that are given twice are named; whoever has more knows what is wrong.
_MAX_REPEATED: Final = 20


def decode_yaml(
    body: bytes, limits: Limits = DEFAULT_LIMITS, repeated: list[str] | None = None
) -> Any:
    """Return what *body* holds, None for an empty document; raises DecodeError.

    *repeated* is given a sentence for each key that a mapping has twice; the last one counts.
    """
    if body.startswith(_UTF_16):
        raise DecodeError("yaml: the text is encoded in UTF-16: want UTF-8")
    directives = body.count(b"%TAG")
    if directives > limits.tag_directives:
        text = f"it has {directives} %TAG directives: want at most {limits.tag_directives}"
        raise LimitExceeded(text)
    composer = _Composer(limits, repeated)
    try:
        for event in yaml.parse(body, Loader=yaml.CSafeLoader):
            composer.take(event)
    except (yaml.YAMLError, UnicodeError) as error:
        raise DecodeError(f"yaml: {error}") from error
    return composer.document


class _Composer:
    """Builds one document from its events."""

    def __init__(self, limits: Limits, repeated: list[str] | None) -> None:
        self.document: Any = None
        self._given_twice = repeated
        self._limits = limits
        self._documents = 0
        self._aliases = 0
        self._nodes = 0
        self._size = 0
        self._repeated = 0
        self._repeated_values = 0
        self._open: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._take: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceEndEvent: self._end,
            yaml.MappingEndEvent: self._end,
            yaml.DocumentStartEvent: self._document,
        }

    def take(self, event: yaml.Event) -> None:
        """Go on by one event."""
        take = self._take.get(type(event))
        if take is not None:
            take(event)

    def _document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _refusal(event, "a second document: want one")

    def _count(self, event: yaml.Event, nodes: int, size: int) -> None:
        self._nodes += nodes
        self._size += size
        if self._nodes > self._limits.nodes:
            text = f"it has more than {self._limits.nodes} values, repetitions counted"
            raise LimitExceeded(_at(event, text))

    def _limit_depth(self, event: yaml.Event, height: int) -> None:
        if len(self._open) + height > self._limits.depth:
            raise _refusal(event, f"it is nested more than {self._limits.depth} levels deep")

    # -- events ------------------------------------------------------------------------------

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        is_key = self._wants_key()
        # As in JSON, keys are no values.
        self._count(event, 0 if is_key else 1, len(event.value))
        if is_key and _is_merge(event):
            self._open[-1].key = _MERGE_SOURCES
            return
        value = _scalar_value(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1, len(event.value), 0, complete=True)
        self._place(event, value)

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor or ""
        anchored = self._anchors.get(name)
        if anchored is None:
            raise _refusal(event, f"alias *{name[:64]}: no such anchor")
        if not anchored.complete:
            raise _refusal(event, f"alias *{name[:64]} stands inside what it repeats")
        self._aliases += 1
        if self._aliases > self._limits.aliases:
            text = f"it has more than {self._limits.aliases} aliases"
            raise LimitExceeded(_at(event, text))
        self._count(event, anchored.nodes, anchored.size)
        self._repeated_values += anchored.nodes
        if self._repeated_values > self._limits.repeated_values:
            text = f"its aliases repeat more than {self._limits.repeated_values} values"
            raise LimitExceeded(_at(event, text))
        self._repeated += anchored.size
        if self._repeated > self._limits.expanded_bytes:
            text = f"its aliases repeat more than {self._limits.expanded_bytes} bytes"
            raise LimitExceeded(_at(event, text))
        self._limit_depth(event, anchored.height)
        self._place(event, _copied(anchored.value), anchored.height)

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            raise _refusal(event, f"tag {event.tag[:64]!r}: JSON has no such type")
        self._count(event, 1, 0)
        self._limit_depth(event, 1)
        if self._wants_key():
            raise _refusal(event, "a list or mapping as a key: want a scalar")
        anchored = None
        if event.anchor is not None:
            anchored = self._anchors[event.anchor] = _Anchored()
        # The node itself is part of what an alias would repeat.
        self._open.append(_Frame({} if is_mapping else [], anchored, self._nodes - 1, self._size))

    def _end(self, event: yaml.CollectionEndEvent) -> None:
        frame = self._open.pop()
        value = frame.value
        if frame.merged and isinstance(value, dict):
            own = value
            value = {}
            # Of several sources the first counts, and what the mapping says itself before all.
            for source in reversed(frame.merged):
                value.update(source)
            value.update(own)
        if frame.anchored is not None:
            frame.anchored.value = value
            frame.anchored.nodes = self._nodes - frame.nodes_before
            frame.anchored.size = self._size - frame.size_before
            frame.anchored.height = frame.height
            frame.anchored.complete = True
        self._place(event, value, frame.height)

    # -- values ------------------------------------------------------------------------------

    def _wants_key(self) -> bool:
        if not self._open:
            return False
        frame = self._open[-1]
        return frame.key is _A_KEY and isinstance(frame.value, dict)

    def _place(self, event: yaml.Event, value: Any, height: int = 0) -> None:
        """Put *value*, which adds *height* levels, where the document has come to."""
        if not self._open:
            self.document = value
            return
        frame = self._open[-1]
        if frame.key is _MERGE_SOURCES:
            # Members come up to this mapping, from its sources or from a list of them.
            height -= 2 if isinstance(value, list) else 1
        frame.height = max(frame.height, height + 1)
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.key is _A_KEY:
            frame.key = key = _key(event, value)
            if self._given_twice is not None and key in frame.value:
                self._note_repeated(event, key)
        elif frame.key is _MERGE_SOURCES:
            frame.merged += _merge_sources(event, value)
            frame.key = _A_KEY
        else:
            frame.value[frame.key] = value
            frame.key = _A_KEY

    def _note_repeated(self, event: yaml.Event, key: str) -> None:
        mark, found = event.start_mark, self._given_twice
        if mark is not None and found is not None and len(found) < _MAX_REPEATED:
            shown = key if len(key) <= 64 else f"{key[:64]}..."
            found.append(f'line {mark.line + 1}: key "{shown}" already set in map')


def _at(event: yaml.Event, text: str) -> str:
    mark = event.start_mark
    return f"yaml: line {mark.line + 1}: {text}" if mark is not None else f"yaml: {text}"


def _refusal(event: yaml.Event, text: str) -> DecodeError:
    return DecodeError(_at(event, text))


def _is_merge(event: yaml.ScalarEvent) -> bool:
    return event.value == _MERGE and (
        event.tag == _TAG + "merge" or (event.tag is None and event.implicit[0])
    )


def _key(event: yaml.Event, value: Any) -> str:
    key = None if isinstance(value, dict | list) else as_key(value)
    if key is None:
        raise _refusal(event, "null, a list or a mapping as a key: want a scalar")
    return key


def _merge_sources(event: yaml.Event, value: Any) -> list[dict[str, Any]]:
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise _refusal(event, "map merge requires map or sequence of maps as the value")
    return sources


def _copied(value: Any) -> Any:
    """Return a copy that shares nothing; no deeper than the limit of nesting."""
    if isinstance(value, dict):
        return {key: _copied(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _scalar_value(event: yaml.ScalarEvent) -> Any:
    tag, text = event.tag, event.value
    if tag is None or tag == "!":
        if not event.implicit[0]:
            return text
        if text in UNREPRESENTABLE:
            raise _refusal(event, f"{text}: JSON has no such number")
        return resolved(text)
    read = _TAGGED.get(tag.removeprefix(_TAG)) if tag.startswith(_TAG) else None
    if read is None:
        raise _refusal(event, f"tag {tag[:64]!r}: JSON has no such type")
    try:
        return read(text)
    except ValueError as error:
        raise _refusal(event, f"cannot decode {text[:64]!r} as {tag[:64]}") from error


def _typed(*types: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = resolved(text)
        if type(value) not in types:
            raise ValueError(text)
        return value

    return read


def _float(text: str) -> int | float:
    value = _typed(int, float)(text)
    return as_json_number(float(value))


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(text) from error


_TAGGED: Final[dict[str, Callable[[str], Any]]] = {
    "str": str,
    "int": _typed(int),
    "float": _float,
    "bool": _typed(bool),
    "null": _typed(type(None)),
    "binary": _binary,
    "timestamp": str,
}
