"""What the edge scheduler keeps of placements from one reconcile to the next.

Everything here could be found out again, at the price of a request or of a vaguer log line; so a
process that starts with nothing reaches the same slices. Observers read it, executors and event
handlers write it.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from skerry.api.kcp.history import MAX_CAUSES
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.consent import ConsentState
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.controllers.edge_scheduler.observed import NO_CAUSE, Cause, Gathered, Observed, Result
from skerry.controllers.edge_scheduler.rollouts import RolloutState


class Causes:
    """The events that enqueued a placement since it was last reconciled.

    The last few are kept, and all are counted: a storm of changes is one decision.
    """

    def __init__(self) -> None:
        self._causes: dict[ObjectRef, tuple[deque[Cause], int]] = {}

    def note(self, ref: ObjectRef, cause: Cause) -> None:
        known, count = self._causes.get(ref) or (deque(maxlen=MAX_CAUSES), 0)
        known.appendleft(cause)
        self._causes[ref] = known, count + 1

    def begin(self) -> None:
        """Take that we lead from now on: what came before was, or will be found, in the state."""
        for known, _ in self._causes.values():
            was = [each._replace(initial=True) for each in known]
            known.clear()
            known.extend(was)

    def of(self, ref: ObjectRef) -> Gathered:
        """Return what enqueued a placement."""
        found = self._causes.get(ref)
        return NO_CAUSE if found is None else Gathered(tuple(found[0]), found[1])

    def discharge(self, ref: ObjectRef, done: Gathered) -> None:
        """Say that what these causes asked for is done; later ones stay.

        Those came while the plan was carried out. They have enqueued the placement again, and its
        next decision is theirs.
        """
        found = self._causes.get(ref)
        if found is None or not done.total:
            return
        known, count = found
        later = count - done.total
        if later <= 0:
            del self._causes[ref]
        else:
            self._causes[ref] = deque(islice(known, later), MAX_CAUSES), later


class PlacementCache:
    """Results for the status, choices for strategies, causes for the log, and what is running."""

    def __init__(
        self, consent: ConsentState, guards: GuardState, rollouts: RolloutState | None = None
    ) -> None:
        """*rollouts* is None where the edge export offers none."""
        self._consent = consent
        self.rollouts = rollouts
        self.guards = guards
        self.running = consent.running
        self.causes = Causes()
        self._chosen: dict[ObjectRef, frozenset[ObjectRef]] = {}
        self._results: dict[ObjectRef, Result] = {}

    def begin(self) -> None:
        """Take that we lead from now on: another process may have led and chosen otherwise.

        Choices are read from the slices again. Results stay until they are found anew: nobody
        decides by them.
        """
        self._chosen.clear()
        self.causes.begin()

    def chosen(self, ref: ObjectRef) -> frozenset[ObjectRef] | None:
        """Return the Locations that a strategy chose before; None when that is not known."""
        return self._chosen.get(ref)

    def note_chosen(self, ref: ObjectRef, locations: frozenset[ObjectRef]) -> None:
        """Take *locations* for those that a strategy chose before."""
        self._chosen[ref] = locations

    def result(self, ref: ObjectRef) -> Result | None:
        """Return what was found for a placement last."""
        return self._results.get(ref)

    def found(self, observed: Observed) -> None:
        """Take what was found for a placement, before its plan is carried out.

        A choice that was made counts even if its slices fail: the next try is to choose the same.
        Confirmations end here for Locations that do not refuse the placement any more.
        """
        ref = observed.ref
        self._results[ref] = observed.result
        if observed.chosen is not None:
            self._chosen[ref] = observed.chosen
        if observed.found is not None:
            self._consent.note(ref, observed.found)
            if not observed.found.refused:
                self.running.forget(ref)
            self.running.settle(ref, observed.refused)
        else:
            self._consent.pass_over(ref)

    def pass_over(self, ref: ObjectRef) -> None:
        """Take that a placement is being deleted, and that nothing is done about it any more."""
        self._consent.pass_over(ref)

    def forget(self, ref: ObjectRef) -> None:
        """Take that a placement is gone."""
        self._chosen.pop(ref, None)
        self._results.pop(ref, None)
        self._consent.forget(ref)
        self.guards.forget(ref)
        if self.rollouts is not None:
            self.rollouts.forget(ref)
        self.causes.discharge(ref, self.causes.of(ref))
