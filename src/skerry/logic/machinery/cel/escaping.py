"""Field names as CEL identifiers, by Kubernetes' rules.

``foo-bar`` is written ``foo__dash__bar`` in a rule; a field named like a CEL keyword is written
``__namespace__``. A name that cannot be written so is out of reach of rules.
"""

from __future__ import annotations

import re

_RESERVED = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
        "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while",
    )
)  # fmt: skip
_SPECIAL = re.compile(r"__|[-./]|[^a-zA-Z0-9\-./_]")
_REPLACED = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escaped(name: str) -> str | None:
    """Return how a rule writes the field *name*; None when it cannot."""
    if not name or name[0].isdigit():
        return None
    if name in _RESERVED:
        return f"__{name}__"
    parts = _SPECIAL.findall(name)
    if any(part not in _REPLACED for part in parts):
        return None
    return _SPECIAL.sub(lambda found: _REPLACED[found.group()], name)
