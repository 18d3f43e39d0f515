"""The rows of ``desired``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.translation.copies import labelled
from skerry.logic.fleet.translation.holders import Sent
from skerry.logic.fleet.translation.merging import PlacementProblem, name_taken
from skerry.logic.fleet.translation.ownership import Owned, owned_by, recorded_on
from skerry.logic.fleet.translation.workspaces import Scope, path_scope


@dataclass(frozen=True, slots=True)
class DesiredRow:
    """What is desired: nothing when ``digest`` is None; ``render`` returns the object itself.

    ``refused`` are placements that want the object, or more of it, than grants let through. With
    ``frozen`` a copy that is there stays as it is. ``owned`` is to be recorded on the copy, which
    matters at once where the name is ``contested``. ``missing`` has to be read before the row means
    anything; what is there ``stays`` until that has been read. ``generation`` is recorded on the
    copy too, unless it is 0.
    """

    digest: bytes | None
    render: Callable[[], Object] | None = None
    problems: tuple[PlacementProblem, ...] = ()
    refused: tuple[ObjectRef, ...] = ()
    frozen: bool = False
    owned: Owned | None = None
    contested: bool = False
    missing: Scope | None = None
    stays: Scope | None = None
    generation: int = 0


NOTHING = DesiredRow(None)


def alone(sent: Sent) -> DesiredRow:
    """Return the row of an object that nobody else places and that needs no customization."""
    record, owned = sent.record, owned_by(sent.cluster)
    render = lambda: recorded_on(labelled(record.copy()), owned)  # noqa: E731 - see ``DesiredRow``
    return DesiredRow(record.digest, render, owned=owned)


def taken(
    item: ObjectRef, cluster: ClusterName, path: str | None, granted: Iterable[Sent]
) -> DesiredRow:
    """Return the row of what others may place where a copy without a grant still is.

    It is of workspace *cluster*, whose *path* the problem names when it has been read.
    """
    if path is None:
        return DesiredRow(None, missing=path_scope(cluster))
    problem = name_taken(item, path)
    problems = [PlacementProblem(p, problem) for each in granted for p in each.placements]
    return DesiredRow(None, problems=tuple(problems))
