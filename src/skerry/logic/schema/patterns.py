"""Regular expressions in Go's RE2 syntax, run by Python's engine.

Schemas carry RE2 patterns. The two dialects agree on nearly everything schemas use; what
differs is translated: ``\\z``, ``\\pL``-like classes, POSIX classes, ``(?P<n>`` and ``(?<n>``,
``\\Q..\\E``, ``\\C``, ``\\x{10FFFF}``, and ``$`` (which in Python also matches before a final
newline). What RE2 has not (look-around, back-references, possessive and atomic groups) is
refused, as Kubernetes refuses it. Unlike RE2 Python backtracks; the body limit bounds the input.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache


class PatternError(ValueError):
    """The pattern is not a regular expression Go would accept."""


_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_SCRIPTS = {
    "Greek": "\\u0370-\\u03FF\\u1F00-\\u1FFF",
    "Latin": "A-Za-z\\u00AA\\u00BA\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u02B8\\u1E00-\\u1EFF",
    "Cyrillic": "\\u0400-\\u052F\\u1C80-\\u1C88\\u2DE0-\\u2DFF\\uA640-\\uA69F",
    "Han": "\\u2E80-\\u2FD5\\u3005\\u3007\\u3021-\\u3029\\u3400-\\u4DBF\\u4E00-\\u9FFF",
}
# RE2 caps counted repetition; Go reports "invalid repeat count" beyond it.
_MOST_REPEATS = 1000
_REFUSED_GROUPS = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?#", "(?P=", "(?P>", "(?(")
# Perl classes are ASCII-only in RE2, inside and outside brackets.
_CLASS_ESCAPES = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r "}
_PLAIN_ESCAPES = frozenset("abfnrtvxABzdDwWsSQEpPC01234567")


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the pattern ready to ``search`` with; raise ``PatternError`` where Go would."""
    translated = _Translation(pattern).run()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"error parsing regexp: {error}: `{pattern}`") from error


class _Translation:
    """One pass over a pattern, writing Python's dialect."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []

    def run(self) -> str:
        while self._at < len(self._pattern):
            self._step(self._pattern[self._at])
        return "".join(self._out)

    def _step(self, char: str) -> None:
        if char == "\\":
            self._out.append(self._escape(in_class=False))
        elif char == "[":
            self._out.append(self._char_class())
        elif char == "(":
            self._out.append(self._group())
        elif char == "$":
            self._emit("$" if self._multiline() else "\\Z", 1)
        elif char in "*+?{":
            self._repeat(char)
        else:
            self._emit(char, 1)

    def _emit(self, text: str, width: int) -> None:
        self._out.append(text)
        self._at += width

    def _multiline(self) -> bool:
        flags = re.match(r"\(\?([a-zA-Z]+)\)", self._pattern)
        return flags is not None and "m" in flags.group(1)

    def _repeat(self, char: str) -> None:
        """Copy one repetition; Python's possessive ``++`` is an error in RE2."""
        found = re.compile(r"\{(\d+)(,(\d*))?\}").match(self._pattern, self._at)
        if char == "{" and found is None:
            self._emit("\\{", 1)
            return
        width = found.end() - found.start() if char == "{" and found else 1
        if char == "{" and found:
            for bound in (found.group(1), found.group(3)):
                if bound and int(bound) > _MOST_REPEATS:
                    raise self._error("invalid repeat count", found.group())
        self._emit(self._pattern[self._at : self._at + width], width)
        if self._pattern.startswith("?", self._at):
            self._emit("?", 1)
        following = self._pattern[self._at : self._at + 1]
        if following and following in "*+?":
            raise self._error("invalid nested repetition operator", f"{char}{following}")

    def _group(self) -> str:
        rest = self._pattern[self._at : self._at + 4]
        for refused in _REFUSED_GROUPS:
            if rest.startswith(refused):
                raise self._error("invalid or unsupported Perl syntax", refused)
        if rest.startswith("(?<"):
            self._at += 3
            return "(?P<"
        flags = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?(:|\))").match(self._pattern, self._at)
        if flags is None:
            self._at += 1
            return "("
        self._at = flags.end()
        return self._flag_group(flags)

    def _flag_group(self, flags: re.Match[str]) -> str:
        on, off, close = flags.group(1), flags.group(2) or "", flags.group(3)
        if "U" in on + off:
            raise self._error("invalid or unsupported Perl syntax", flags.group())
        if close == ")" and flags.start() > 0:
            # Python wants global flags first; from the middle they apply to what follows.
            rest = self._pattern[self._at :]
            tail = _Translation(rest).run()
            self._at = len(self._pattern)
            return f"(?{on}{'-' + off if off else ''}:{tail})"
        return f"(?{on}{'-' + off if off else ''}{close}"

    def _char_class(self) -> str:
        self._at += 1
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        parts: list[str] = []
        first = True
        while first or not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise self._error("missing closing ]", self._pattern)
            parts.append(self._class_part())
            first = False
        self._at += 1
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _class_part(self) -> str:
        char = self._pattern[self._at]
        if char == "\\":
            return self._escape(in_class=True)
        if char == "[":
            posix = re.compile(r"\[:(\^?)(\w+):\]").match(self._pattern, self._at)
            if posix is not None:
                return self._posix(posix)
            self._at += 1
            return "\\["
        self._at += 1
        if char in "]&~|":
            return f"\\{char}"
        return char

    def _posix(self, found: re.Match[str]) -> str:
        members = _POSIX.get(found.group(2))
        if members is None:
            raise self._error("invalid character class range", found.group())
        self._at = found.end()
        return _complement(members) if found.group(1) else members

    def _escape(self, *, in_class: bool) -> str:
        if self._at + 1 >= len(self._pattern):
            raise self._error("trailing backslash at end of expression", "")
        char = self._pattern[self._at + 1]
        self._at += 2
        if char in "pP":
            return self._unicode_class(negated=char == "P", in_class=in_class)
        if char == "Q":
            end = self._pattern.find("\\E", self._at)
            literal = self._pattern[self._at : end if end >= 0 else None]
            self._at = end + 2 if end >= 0 else len(self._pattern)
            return re.escape(literal)
        if char == "x" and self._pattern.startswith("{", self._at):
            return self._braced_code_point()
        if in_class and char.lower() in _CLASS_ESCAPES:
            members = _CLASS_ESCAPES[char.lower()]
            return members if char.islower() else _complement(members)
        return self._simple_escape(char)

    def _simple_escape(self, char: str) -> str:
        if char == "z":
            return "\\Z"
        if char == "s":
            return "[\\t\\n\\f\\r ]"
        if char == "S":
            return "[^\\t\\n\\f\\r ]"
        if char == "C":
            return "(?s:.)"
        if char.isalnum() and (char not in _PLAIN_ESCAPES or char in "123456789"):
            raise self._error("invalid escape sequence", f"\\{char}")
        return f"\\{char}"

    def _braced_code_point(self) -> str:
        end = self._pattern.find("}", self._at)
        digits = self._pattern[self._at + 1 : end]
        if end < 0 or not re.fullmatch(r"[0-9A-Fa-f]{1,6}", digits) or int(digits, 16) > 0x10FFFF:
            raise self._error("invalid escape sequence", f"\\x{self._pattern[self._at :]}")
        self._at = end + 1
        return f"\\U{int(digits, 16):08x}"

    def _unicode_class(self, *, negated: bool, in_class: bool) -> str:
        found = re.compile(r"\{(\^?)(\w+)\}|(\w)").match(self._pattern, self._at)
        if found is None:
            raise self._error("invalid character class range", f"\\p{self._pattern[self._at :]}")
        self._at = found.end()
        if found.group(1):
            negated = not negated
        name = found.group(2) or found.group(3)
        members = _SCRIPTS.get(name) or _category(name)
        if not members:
            raise self._error("invalid character class range", f"\\p{{{name}}}")
        if in_class:
            return _complement(members) if negated else members
        return f"[{'^' if negated else ''}{members}]"

    def _error(self, what: str, where: str) -> PatternError:
        return PatternError(f"error parsing regexp: {what}: `{where}`")


@lru_cache(maxsize=64)
def _category(name: str) -> str:
    """Return the ranges of a Unicode general category (``L``, ``Lu``, ``Nd`` ...)."""
    return _ranges(
        code
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[: len(name)] == name
    )


@lru_cache(maxsize=64)
def _complement(members: str) -> str:
    """Return the ranges of everything *members* does not hold."""
    inside = re.compile(f"[{members}]")
    return _ranges(code for code in range(sys.maxunicode + 1) if not inside.match(chr(code)))


def _ranges(codes: Iterable[int]) -> str:
    """Return ascending code points as the body of a character class."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in runs)
