"""Runs the placement plugins over the Locations that match, and chooses.

What plugins say of a Location is remembered by the framework for all placements with equal
strategies and asked anew only for Locations that changed. So one choice costs a few operations on
arrays as long as the placement's matching Locations, however long its plugins think.

Choices are *sticky*: who was chosen and still passes stays, because moving a workload costs more
than an uneven spread. Newcomers fill the emptiest domains. When fewer are wished for than before,
those stay that keep the spread, then the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from pyroaring import BitMap

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.choosing import Choice
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.strategy import Candidate, Strategy
from skerry.scheduler.framework.choose import Domain, Offer, choose
from skerry.scheduler.framework.columns import evaluate_filter
from skerry.scheduler.framework.evaluation import Evaluation, Evaluator, raise_errors
from skerry.scheduler.framework.plugin import Diagnosis
from skerry.scheduler.framework.profile import assemble
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.runner import Framework
from skerry.scheduler.placement.registry import placement_profile, placement_registry
from skerry.scheduler.placement.table import LocationTable
from skerry.scheduler.placement.wish import Wish
from skerry.scheduler.table import Rows


class LocationChooser:
    """Chooses among the Locations of an inventory; see ``logic.fleet.placement.choosing``."""

    def __init__(self, inventory: Inventory, registry: Registry | None = None) -> None:
        known = placement_registry() if registry is None else registry
        self._inventory = inventory
        self._table = LocationTable(inventory)
        profile = assemble(placement_profile(known), known, self._table, decides_only=True)
        framework: Framework[Wish, Candidate] = Framework(profile)
        self._evaluator: Evaluator[Wish, Candidate] = Evaluator(framework, self._table)

    def changed(self, location: int) -> None:
        """Hear that the Location of that number is new, other or gone."""
        self._table.read(location)

    def choose(
        self, strategy: Strategy, matching: BitMap, present: AbstractSet[ObjectRef]
    ) -> Choice:
        """Return which of the Locations in *matching* to take, given those taken before."""
        held = self._numbers(present) & matching
        staying = _Asked(self._evaluator, Wish(strategy, held=True), held)
        coming = _Asked(self._evaluator, Wish(strategy), matching - held)
        if strategy.number is None:
            chosen = [*staying.rows.tolist(), *coming.rows.tolist()]
        else:
            chosen = self._some(strategy, strategy.number, staying, coming)
        shortage = ""
        if strategy.number is not None and len(chosen) < strategy.number:
            shortage = _counted_reasons([staying.diagnosis(), coming.diagnosis()])
        return Choice(sorted(chosen), shortage)

    def refusal(self, strategy: Strategy, location: int, present: AbstractSet[ObjectRef]) -> str:
        """Return why *strategy* does not let a Location through; empty when it does."""
        held = location in self._numbers(present)
        asked = _Asked(self._evaluator, Wish(strategy, held), BitMap([location]))
        if len(asked.rows):
            return ""
        status = asked.diagnosis().status_of(location)
        return f"{status.plugin}: {status.message}" if status is not None else ""

    def _some(self, strategy: Strategy, count: int, staying: _Asked, coming: _Asked) -> list[int]:
        skews = [spread.max_skew for spread in strategy.spread]
        present = self._offers(strategy, staying)
        if len(present) > count:
            labelled = [offer for offer in present if None not in offer.domain]
            kept = choose(labelled, count, skews)
            rest = [offer for offer in present if offer.row not in set(kept)]
            return [*kept, *choose(rest, count - len(kept))]
        taken = [offer.domain for offer in present]
        newcomers = self._offers(strategy, coming)
        more = choose(newcomers, count - len(present), skews, taken)
        return [*(offer.row for offer in present), *more]

    def _offers(self, strategy: Strategy, asked: _Asked) -> list[Offer]:
        target, keys = self._table.target, [each.topology_key for each in strategy.spread]
        offers: list[Offer] = []
        for row, total in zip(asked.rows.tolist(), asked.totals(), strict=True):
            candidate = target(row)
            offers.append(Offer.of(total, candidate.ref, row, _domain(candidate, keys)))
        return offers

    def _numbers(self, refs: Iterable[ObjectRef]) -> BitMap:
        found = (self._inventory.location_number(ref) for ref in refs)
        return BitMap(number for number in found if number is not None)


class _Asked:
    """What the plugins say to one wish about some Locations; ``rows`` are those that pass."""

    def __init__(
        self, evaluator: Evaluator[Wish, Candidate], wish: Wish, locations: BitMap
    ) -> None:
        self._evaluator = evaluator
        self._wish = wish
        self._all: Rows = np.array(locations.to_array(), np.int64)
        evaluation, self._state, prepared = evaluator.begin(wish, evaluator.signature(wish))
        self._evaluation: Evaluation[Wish] = evaluation
        self._refused = prepared.status
        self.rows: Rows = np.zeros(0, np.int64)
        if self._refused is None and len(self._all):
            evaluator.build(evaluation, self._state, wish)
            self.rows = self._passing(self._named(prepared.names))

    def totals(self) -> list[int]:
        """Return the score of each passing row."""
        if not len(self.rows):
            return []
        found = self._evaluator.totals(self._evaluation, self._state, self._wish, self.rows)
        totals: list[int] = found.tolist()
        return totals

    def diagnosis(self) -> Diagnosis:
        """Say why the others do not pass."""
        if self._refused is not None:
            return Diagnosis(total=len(self._all), absent=self._refused)
        if not len(self._all):
            return Diagnosis()
        refused = np.setdiff1d(self._all, self.rows)
        return self._evaluator.diagnose(self._evaluation, self._state, self._wish, refused)

    def _named(self, names: AbstractSet[str] | None) -> Rows:
        """Return the Locations asked about, as far as PreFilter plugins find them worth a look."""
        if names is None:
            return self._all
        found = (self._evaluator.table.row(name) for name in names)
        return np.intersect1d(self._all, [row for row in found if row is not None])

    def _passing(self, rows: Rows) -> Rows:
        evaluator = self._evaluator
        rows = rows[self._evaluation.feasible[rows]]
        for plugin in evaluator.other_filters(self._state):
            verdicts = evaluate_filter(plugin, self._state, self._wish, rows, evaluator.table)
            raise_errors(plugin, verdicts)
            rows = rows[verdicts.codes == 0]
        return rows


def _domain(candidate: Candidate, keys: Sequence[str]) -> Domain:
    return tuple(candidate.labels.get(key) for key in keys)


def _counted_reasons(diagnoses: Iterable[Diagnosis]) -> str:
    """Return how many Locations were turned down for each reason, in one sentence."""
    reasons: dict[str, int] = {}
    for diagnosis in diagnoses:
        for reason, count in diagnosis.counts().items():
            reasons[reason] = reasons.get(reason, 0) + count
    return ", ".join(f"{reasons[reason]} {reason}" for reason in sorted(reasons))
