"""Draws the rooms of the house from the imports, into docs/architecture.md.

    python docs/rooms.py            # print the picture
    python docs/rooms.py --write    # put it between its marks in docs/architecture.md

An arrow says "imports"; one that follows from two others is left out. A test compares what stands in
the document with what the code says.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "skerry"
DOCUMENT = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: made by docs/rooms.py -->\n", "<!-- end of rooms -->\n"
# The packages whose own rooms are worth a picture, and what it is called.
PICTURES = {"": "The layers", "logic": "`logic`", "server": "`server`", "scheduler": "`scheduler`"}

Rooms = dict[str, set[str]]


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names a module imports from skerry, without the package's own name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skerry"):
            for name in node.names:
                yield f"{node.module}.{name.name}".removeprefix("skerry.")


def room_of(name: str, within: str) -> str | None:
    """Return the folder that *name* is in, directly below *within*; None for single modules."""
    if within and not name.startswith(within + "."):
        return None
    first = name.removeprefix(within + "." if within else "").split(".")[0]
    return first if (SOURCE / within.replace(".", "/") / first / "__init__.py").exists() else None


def rooms(within: str) -> Rooms:
    """Return every room below *within*, with the rooms it imports."""
    found: Rooms = {}
    for path in sorted((SOURCE / within).rglob("*.py")):
        room = room_of(".".join(path.relative_to(SOURCE).parts), within)
        if room is None:
            continue
        known = found.setdefault(room, set())
        for name in imported(ast.parse(path.read_text())):
            other = room_of(name, within)
            if other is not None and other != room:
                known.add(other)
    return found


def reduced(graph: Mapping[str, set[str]]) -> Rooms:
    """Return *graph* without the arrows that follow from others; it must have no cycles."""

    def reached(room: str) -> set[str]:
        below = graph.get(room, set())
        return below.union(*map(reached, below)) if below else set()

    return {
        room: {each for each in below if not any(each in reached(x) for x in below)}
        for room, below in graph.items()
    }


def picture(within: str) -> str:
    """Return a mermaid diagram of the rooms below *within*."""
    graph = reduced(rooms(within))
    lines = ["```mermaid", "graph TD"]
    lines += [f"    {room}" for room in sorted(graph) if not graph[room]]
    lines += [f"    {room} --> {below}" for room in sorted(graph) for below in sorted(graph[room])]
    return "\n".join([*lines, "```", ""])


def page() -> str:
    """Return all pictures, as they stand in the document."""
    parts = [f"\n{title}:\n\n{picture(within)}" for within, title in PICTURES.items()]
    return "".join(parts) + "\n"


def drawn(document: str) -> str:
    """Return *document* with the pictures as they are now."""
    before, _, rest = document.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{DOCUMENT}: want the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}{page()}{END}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        DOCUMENT.write_text(drawn(DOCUMENT.read_text()))
    else:
        sys.stdout.write(page())
