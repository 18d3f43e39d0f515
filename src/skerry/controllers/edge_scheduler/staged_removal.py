"""Taking a placement away wave by wave.

An EdgePlacement with a Rollout may ask for it by an annotation; then it has a finalizer. When it is
deleted, and guards let it go, the placement translator cuts a revision of nothing, and the Rollout
brings that everywhere as any other. The finalizer goes when nothing is what everybody has who can
be reached; then the slices go with the placement, and the mailboxes of all others are emptied.

    the placement            annotated    Rollout    its finalizer
    is there                 yes          yes        put on
    is there                 no, or no Rollout       taken off
    is being deleted         yes          yes        stays until a revision of nothing is stable
    is being deleted         no, or no Rollout       taken off: everything goes at once

The finalizer is put on ahead because one cannot be added to an object that is being deleted. A
person who loses patience takes the annotation off; then nothing here holds the placement any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.edge import EDGE_PLACEMENTS, ROLLOUT_FINALIZER, wants_staged_removal
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.observed import Observed
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.logic.fleet.rollout.state import COMPLETED, State
from skerry.logic.machinery.plan import Action, Patch, Target


def is_concerned(placement: Object) -> bool:
    """Tell whether a placement asks for it, or has been kept for it."""
    return wants_staged_removal(placement) or _has_finalizer(placement)


def is_taken_away(observed: Observed) -> bool:
    """Tell whether a placement is being taken away, so that nobody is let in any more."""
    return observed.staged is not None and is_being_deleted(observed.staged)


def finalized(observed: Observed, state: State | None = None) -> Iterator[Action]:
    """Yield what keeps a placement that asks for it, and what lets it go.

    *state* is what its Rollout has come to; None where it has none.
    """
    placement, found = observed.staged, observed.rollout
    if placement is None:
        return
    held = _has_finalizer(placement)
    if not is_being_deleted(placement):
        wanted = wants_staged_removal(placement) and found is not None
        if wanted and not held:
            yield _with_finalizers(
                observed.ref,
                placement,
                [*(placement["metadata"].get("finalizers") or ()), ROLLOUT_FINALIZER],
                "StagedRemovalWanted",
            )
        elif held and not wanted:
            yield without_finalizer(observed.ref, placement)
        return
    if found is None or state is None:
        yield without_finalizer(observed.ref, placement)
        return
    stable = found.revisions.get(state.stable)
    done = state.phase == COMPLETED and state.stable == found.live
    if done and stable is not None and stable.is_empty:
        yield without_finalizer(observed.ref, placement)


def without_finalizer(ref: ObjectRef, placement: Object) -> Patch:
    """Return what lets a placement go."""
    finalizers = placement["metadata"].get("finalizers") or ()
    kept = [each for each in finalizers if each != ROLLOUT_FINALIZER]
    return _with_finalizers(ref, placement, kept, "StagedRemovalDone")


def _has_finalizer(placement: Object) -> bool:
    return ROLLOUT_FINALIZER in (placement["metadata"].get("finalizers") or ())


def _with_finalizers(
    ref: ObjectRef, placement: Object, finalizers: list[str], reason: str
) -> Patch:
    """Return a write of exactly these finalizers, on the object as it was seen."""
    known = {key: placement["metadata"].get(key) for key in ("uid", "resourceVersion")}
    target = Target(EDGE_PLACEMENTS, ref.name, cluster=ref.cluster)
    return Patch(
        target, {"metadata": {**known, "finalizers": finalizers}}, reason, absent_is_fine=True
    )
