"""One file of many: the modules that the page begins with, joined when the hub starts.

A browser that fetches twenty modules over HTTP/1.1 makes six connections and many round trips
before it runs the first line. So the first module is served with everything that it needs inside,
each module a function of its own that returns what it exports. Whoever imports such a module by its
own name (a view that is fetched later, a test) gets one that hands on what is in the joined file:
there is one instance of everything. The sources stay modules that a browser runs as they are.

Our own modules and the vendored ones are written in few forms, and only those are understood;
anything else is an error when the hub's tests run, not in a browser.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

# At the beginning of a line, or after a statement: the vendored modules are single lines.
_START = r"(?:^|(?<=[;}]))"
_IMPORT = re.compile(_START + r'import *(\{[^}]*\}|\w+) *from *"([^"]+)";?', re.M)
_EXPORT_FROM = re.compile(_START + r'export *\{([^}]*)\} *from *"([^"]+)";?', re.M)
_EXPORT_LIST = re.compile(_START + r"export *\{([^}]*)\};?", re.M)
_EXPORT_DEFAULT = re.compile(_START + r"export default ", re.M)
_EXPORT = re.compile(_START + r"export ((?:async )?function|class|const) (\w+)", re.M)
_DYNAMIC = re.compile(r'\bimport\("(\.[^"]+)"\)')
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.M)
_LEFT = re.compile(_START + r"(?:import|export)\b(?! *\()", re.M)
_STYLE = re.compile(r'^@import "([^"]+)";$', re.M)
_DEFAULT = "default"


class Unjoined(Exception):
    """Why modules cannot be joined, in a sentence."""


@dataclass(slots=True)
class _Module:
    """A module as a function: its name there, its text, and the value of each export."""

    name: str
    text: str
    exports: dict[str, str] = field(default_factory=dict)


def joined(
    files: Mapping[str, bytes], entry: str, apart: frozenset[str] = frozenset()
) -> dict[str, bytes]:
    """Return *entry* with everything it imports inside, and what the others hand on instead.

    What is *apart* stays a module of its own.
    """
    joining = _Joining(files, entry, apart)
    joining.add(entry)
    return joining.result()


def flattened(files: Mapping[str, bytes], name: str) -> bytes:
    """Return a style sheet with those that it imports in their place."""

    def inside(found: re.Match[str]) -> str:
        return files[_beside(name, found[1])].decode()

    return _STYLE.sub(inside, files[name].decode()).encode()


class _Joining:
    def __init__(self, files: Mapping[str, bytes], entry: str, apart: frozenset[str]) -> None:
        self._files = files
        self._entry = entry
        self._apart = apart
        self._modules: dict[str, _Module] = {}
        self._begun: set[str] = set()
        # What the joined file imports itself, by name.
        self._outer: dict[str, str] = {}

    def add(self, path: str) -> str:
        """Have a module and what it needs before it; return its name in the joined file."""
        if path in self._apart:
            return self._outer.setdefault(path, f"$apart{len(self._outer)}")
        known = self._modules.get(path)
        if known is not None:
            return known.name
        if path in self._begun:
            raise Unjoined(f"{path}: imports itself by way of others")
        self._begun.add(path)
        module = self._read(path, self._files[path].decode())
        self._modules[path] = module
        return module.name

    def _read(self, path: str, text: str) -> _Module:
        exports: dict[str, str] = {}

        def imported(found: re.Match[str]) -> str:
            names, source = found[1], self.add(_beside(path, found[2]))
            if names.startswith("{"):
                pairs = ", ".join(f"{a}: {b}" if a != b else a for a, b in _pairs(names[1:-1]))
                return f"const {{ {pairs} }} = {source};"
            return f"const {names} = {source}.{_DEFAULT};"

        def handed_on(found: re.Match[str]) -> str:
            source = self.add(_beside(path, found[2]))
            exports.update({outer: f"{source}.{inner}" for inner, outer in _pairs(found[1])})
            return ""

        def listed(found: re.Match[str]) -> str:
            exports.update({outer: inner for inner, outer in _pairs(found[1])})
            return ""

        def declared(found: re.Match[str]) -> str:
            exports[found[2]] = found[2]
            return f"{found[1]} {found[2]}"

        def default(_: re.Match[str]) -> str:
            exports[_DEFAULT] = "$default"
            return "const $default = "

        def fetched(found: re.Match[str]) -> str:
            target = _beside(path, found[1])
            here = posixpath.dirname(self._entry)
            return f'import("./{posixpath.relpath(target, here)}")'

        text = _SOURCE_MAP.sub("", text)
        for pattern, become in (
            (_IMPORT, imported),
            (_EXPORT_FROM, handed_on),
            (_EXPORT_LIST, listed),
            (_EXPORT_DEFAULT, default),
            (_EXPORT, declared),
        ):
            text = pattern.sub(become, text)
        if left := _LEFT.search(text):
            raise Unjoined(f"{path}: {text[left.start() : left.start() + 60]!r} is not understood")
        return _Module(f"$module{len(self._modules)}", _DYNAMIC.sub(fetched, text), exports)

    def result(self) -> dict[str, bytes]:
        """Return the files that are other than before."""
        here = posixpath.dirname(self._entry)
        parts = [
            f'import * as {name} from "./{posixpath.relpath(path, here)}";'
            for path, name in self._outer.items()
        ]
        found: dict[str, bytes] = {}
        for path, module in self._modules.items():
            values = ", ".join(f"{name}: {value}" for name, value in module.exports.items())
            parts.append(
                f"const {module.name} = (() => {{\n{module.text}\nreturn {{ {values} }};\n}})();"
            )
            if path != self._entry:
                found[path] = self._handing_on(path, module).encode()
        names = ", ".join(module.name for module in self._modules.values())
        parts.append(f"export {{ {names} }};\n")
        return {**found, self._entry: "\n".join(parts).encode()}

    def _handing_on(self, path: str, module: _Module) -> str:
        """Return a module that exports what the joined file has of it."""
        source = posixpath.relpath(self._entry, posixpath.dirname(path))
        source = source if source.startswith(".") else f"./{source}"
        lines = [f'import {{ {module.name} as it }} from "{source}";']
        named = [name for name in module.exports if name != _DEFAULT]
        if named:
            lines.append(f"export const {{ {', '.join(named)} }} = it;")
        if _DEFAULT in module.exports:
            lines.append(f"export default it.{_DEFAULT};")
        return "\n".join([*lines, ""])


def _beside(path: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def _pairs(names: str) -> list[tuple[str, str]]:
    """Return what is meant by ``a, b as c``: the name there, and the name here."""
    found = []
    for each in names.split(","):
        if each.strip():
            inner, _, outer = each.strip().partition(" as ")
            found.append((inner.strip(), (outer or inner).strip()))
    return found
