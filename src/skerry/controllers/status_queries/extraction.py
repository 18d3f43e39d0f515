"""What is kept of each object of a kind: the parts that queries about the kind need.

Parts have places in what is kept of an object. A place stays its part's as long as a query needs
it, so what was kept before is still good for the queries of before; a place nobody needs is given
to the next part. Whatever changes makes a new version, and what was kept under an older one must
be read once more before a new query starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skerry.api.edge import DOMAIN, is_projected, is_report
from skerry.api.objects import Object
from skerry.controllers.status_queries.feed import WatchedKind
from skerry.logic.fleet.query.expressions import Part, kept
from skerry.logic.fleet.query.rows import Copy
from skerry.logic.fleet.summary.report import report_of

_METADATA = ("name", "namespace", "labels", "generation", "creationTimestamp")
_STATUS = "status"


# In a copy come first its report and the version of the layout that the rest has.
_VERSION = 1
_FIRST_PART = 2


def version_of(copy: Copy) -> int:
    """Return the version of the layout under which a copy was kept."""
    found: int = copy[_VERSION]
    return found


class Layout:
    """Which part is where in what is kept of an object of one kind."""

    def __init__(self) -> None:
        self.version = 0
        self._places: list[Part | None] = []
        self._reads_object = False

    def need(self, parts: Iterable[Part]) -> None:
        """Keep exactly these parts from now on."""
        wanted = dict.fromkeys(parts)
        before = list(self._places)
        places = [part if part in wanted else None for part in before]
        new = [part for part in wanted if part not in places]
        for number, part in enumerate(places):
            if part is None and new:
                places[number] = new.pop(0)
        self._places = [*places, *new]
        self._reads_object = any(part is not None and _reads_object(part) for part in self._places)
        if self._places != before or not self.version:
            self.version += 1

    def positions(self) -> dict[str, int]:
        """Return where the value of each part is in a copy, by the part's tree."""
        found = enumerate(self._places, _FIRST_PART)
        return {part.tree: number for number, part in found if part is not None}

    def extract(self, kind: WatchedKind, obj: Object, lean: Object) -> Copy | None:
        """Return what is kept of a whole object; *lean* has the report of a copy already."""
        if is_projected(obj):
            report = lean.get("report")
        elif is_report(obj):
            report = report_of(kind.group, kind.kind, obj)
        else:
            return None
        if report is None:
            return None
        status = obj.get(_STATUS)
        scope: dict[str, Any] = {_STATUS: status if isinstance(status, dict) else {}}
        scope["obj"] = placed_object(obj) if self._reads_object else None
        values = (None if part is None else kept(part.program, scope) for part in self._places)
        return (report, self.version, *values)


def placed_object(obj: Object) -> Object:
    """Return what an expression sees as ``obj``: what was placed, without marks of the chain.

    Those name clusters and generations of others, and are nobody's business.
    """
    metadata = obj["metadata"]
    shown = {name: metadata[name] for name in _METADATA if name in metadata}
    annotations = metadata.get("annotations") or {}
    shown["annotations"] = _own(annotations.items())
    if "labels" in shown:
        shown["labels"] = _own(shown["labels"].items())
    return {**{k: v for k, v in obj.items() if k != _STATUS}, "metadata": shown}


def _own(entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {key: value for key, value in entries if not key.startswith((DOMAIN, "kcp.io/"))}


def _reads_object(part: Part) -> bool:
    return "obj" in part.program.names
