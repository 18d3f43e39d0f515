"""Running totals for rules about other pods.

Spreading and inter-pod affinity ask "how many pods that match this selector are in that zone?".
Rescanning all pods for each decision is what makes those rules slow elsewhere. Here each distinct
question is a ``Tally``: one number per row, and per topology key one number per domain, changed by
one when a pod comes or goes.

Pods are grouped by (namespace, labels, terminating); whether a group matches a question is worked
out once. Questions pods themselves carry (their affinity terms) are kept the other way round: a
tally per distinct term of how many pods on each row carry it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skerry.logic.machinery.selectors import Selector
from skerry.scheduler.cache.label_column import LabelColumn
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.terms import AffinityTerm

Ints = NDArray[np.int64]

# Questions kept up to date at once; each costs eight bytes per row.
TALLIES_KEPT = 512
# Beyond this many groups, those without pods are forgotten now and then.
GROUPS_KEPT = 4096


class Group(NamedTuple):
    """Pods nothing here can tell apart."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    terminating: bool


class Question(NamedTuple):
    """Which pods to count: in these namespaces (None: all), matching every selector."""

    namespaces: frozenset[str] | None
    selectors: tuple[Selector, ...]
    count_terminating: bool

    def means(self, group: Group, labels: Mapping[str, str]) -> bool:
        if group.terminating and not self.count_terminating:
            return False
        if self.namespaces is not None and group.namespace not in self.namespaces:
            return False
        return all(selector.matches(labels) for selector in self.selectors)


class Tally:
    """One number per row and, where asked for, per domain of a topology key."""

    def __init__(self, capacity: int, label: Callable[[str], LabelColumn]) -> None:
        self.by_row: Ints = np.zeros(capacity, np.int64)
        self.total = 0
        # False once nobody keeps the tally up to date any more.
        self.kept = True
        self._label = label
        self._domains: dict[str, tuple[LabelColumn, Ints]] = {}

    def add(self, row: int, amount: int) -> None:
        self.by_row[row] += amount
        self.total += amount
        for column, sums in self._domains.values():
            # -1, an absent label, falls on the spare last element.
            sums[column.codes[row]] += amount

    def domains(self, key: str) -> Ints:
        """Return the sums by value number of a label, one spare element last.

        Do not change the answer: it is the running total itself.
        """
        kept = self._domains.get(key)
        column = self._label(key)
        if kept is None or len(kept[1]) != len(column.values) + 1:
            sums = domain_sums(column.codes, self.by_row, len(column.values))
            self._domains[key] = kept = (column, sums)
        return kept[1]

    def near(self, key: str, rows: NDArray[np.int64]) -> Ints:
        """Return, for each row, the sum over its domain; 0 where the label is absent."""
        column = self._label(key)
        if column.one_to_one:
            # Every node is a domain of its own, as by host name: nothing to add up.
            alone: Ints = self.by_row[rows]
            return alone
        sums = self.domains(key)
        if sums[-1]:
            sums = sums.copy()
            sums[-1] = 0
        found: Ints = sums[column.codes[rows]]
        return found

    def relabelled(self) -> None:
        """Forget sums by domain: rows have moved between domains."""
        self._domains.clear()

    def grow(self, capacity: int) -> None:
        by_row = np.zeros(capacity, np.int64)
        by_row[: len(self.by_row)] = self.by_row
        self.by_row = by_row
        self._domains.clear()


def domain_sums(codes: NDArray[np.int32], by_row: Ints, values: int) -> Ints:
    """Add up rows by value number; the last element gathers rows without the label."""
    # Shifted by one so that absence (-1) becomes bin 0; then rotated to the end.
    sums = np.bincount(codes + 1, weights=by_row, minlength=values + 1).astype(np.int64)
    return np.concatenate([sums[1:], sums[:1]])


class _GroupState:
    __slots__ = ("carried", "labels", "rows", "tallies")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.tallies: list[Tally] = []
        # Kind → (version, terms carried by others that mean this group).
        self.carried: dict[str, tuple[int, list[tuple[AffinityTerm, Tally]]]] = {}


class PodCounts:
    """All tallies over one table."""

    # Kinds of terms pods carry.
    AFFINITY = "affinity"
    ANTI = "anti"
    PREFERRED = "preferred"
    PREFERRED_ANTI = "preferredAnti"

    def __init__(self, label: Callable[[str], LabelColumn]) -> None:
        self._label = label
        self._capacity = 64
        self._groups: dict[Group, _GroupState] = {}
        self._tallies: OrderedDict[Question, Tally] = OrderedDict()
        self._carried: dict[str, dict[AffinityTerm, Tally]] = {
            kind: {} for kind in (self.AFFINITY, self.ANTI, self.PREFERRED, self.PREFERRED_ANTI)
        }
        self._holders: dict[tuple[str, AffinityTerm], int] = {}
        self._version = 0
        self.namespace_labels: dict[str, Mapping[str, str]] = {}

    def account(self, pod: PodInfo, row: int, sign: int) -> None:
        """Note that *pod* came to (1) or left (-1) *row*."""
        state = self._group(pod)
        left = state.rows.get(row, 0) + sign
        if left:
            state.rows[row] = left
        else:
            del state.rows[row]
        for tally in state.tallies:
            tally.add(row, sign)
        if pod.spec.affine:
            self._account_terms(pod, row, sign)

    def _group(self, pod: PodInfo) -> _GroupState:
        # The group key is the template's, twice: living and terminating.
        derived = pod.spec.derived
        name = "counts.dying" if pod.terminating else "counts"
        group: Group | None = derived.get(name)
        if group is None:
            labels = frozenset(pod.spec.labels.items())
            group = derived[name] = Group(pod.namespace, labels, pod.terminating)
        state = self._groups.get(group)
        if state is None:
            self._prune()
            state = self._groups[group] = _GroupState(pod.spec.labels)
            for question, tally in self._tallies.items():
                if question.means(group, pod.spec.labels):
                    state.tallies.append(tally)
        return state

    def _prune(self) -> None:
        if len(self._groups) > GROUPS_KEPT and len(self._groups) % 1024 == 0:
            self._groups = {group: state for group, state in self._groups.items() if state.rows}

    def _account_terms(self, pod: PodInfo, row: int, sign: int) -> None:
        spec = pod.spec
        for term in spec.affinity:
            self._carry(self.AFFINITY, term, row, 1, sign)
        for term in spec.anti_affinity:
            self._carry(self.ANTI, term, row, 1, sign)
        for weight, term in spec.preferred:
            self._carry(self.PREFERRED, term, row, weight, sign)
        for weight, term in spec.preferred_anti:
            self._carry(self.PREFERRED_ANTI, term, row, weight, sign)

    def _carry(self, kind: str, term: AffinityTerm, row: int, weight: int, sign: int) -> None:
        tally = self._carried[kind].get(term)
        if tally is None:
            tally = self._carried[kind][term] = Tally(self._capacity, self._label)
            self._version += 1
        tally.add(row, sign * weight)
        holders = self._holders.get((kind, term), 0) + sign
        if holders:
            self._holders[kind, term] = holders
        else:
            del self._holders[kind, term], self._carried[kind][term]
            self._version += 1

    def tally(self, question: Question) -> Tally:
        """Return the running answer to *question*, counting all pods on first asking."""
        tally = self._tallies.get(question)
        if tally is not None:
            self._tallies.move_to_end(question)
            return tally
        tally = Tally(self._capacity, self._label)
        for group, state in self._groups.items():
            if question.means(group, state.labels):
                state.tallies.append(tally)
                for row, count in state.rows.items():
                    tally.by_row[row] += count
                    tally.total += count
        self._tallies[question] = tally
        if len(self._tallies) > TALLIES_KEPT:
            self._forget(self._tallies.popitem(last=False)[1])
        return tally

    def _forget(self, tally: Tally) -> None:
        tally.kept = False
        for state in self._groups.values():
            if tally in state.tallies:
                state.tallies.remove(tally)

    def carried(self, kind: str, pod: PodInfo) -> list[tuple[AffinityTerm, Tally]]:
        """Return the terms of a kind, carried by placed pods, that mean *pod*."""
        terms = self._carried[kind]
        if not terms:
            return []
        state = self._group(pod)
        known = state.carried.get(kind)
        if known is None or known[0] != self._version:
            labels = self.namespace_labels.get(pod.namespace, {})
            found = [
                (term, tally)
                for term, tally in terms.items()
                if term.matches(pod.namespace, pod.spec.labels, labels)
            ]
            known = state.carried[kind] = (self._version, found)
        return known[1]

    def any_carried(self, kind: str) -> bool:
        return bool(self._carried[kind])

    def namespaces(self, term: AffinityTerm) -> frozenset[str] | None:
        """Return the namespaces a term means at present; None for all."""
        selector = term.namespace_selector
        if selector.empty:
            return None
        if selector.nothing:
            return term.namespaces
        selected = {
            name for name, labels in self.namespace_labels.items() if selector.matches(labels)
        }
        return term.namespaces | selected

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Take over a namespace's labels; None when it is gone."""
        if labels is None:
            self.namespace_labels.pop(name, None)
        else:
            self.namespace_labels[name] = labels
        self._version += 1

    def relabelled(self) -> None:
        """Note that some node's labels may have changed."""
        for tally in self._every_tally():
            tally.relabelled()

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for tally in self._every_tally():
            tally.grow(capacity)

    def _every_tally(self) -> list[Tally]:
        carried = [tally for terms in self._carried.values() for tally in terms.values()]
        return [*self._tallies.values(), *carried]

    def keys(self) -> list[Hashable]:
        """Return the questions kept up to date, for inspection."""
        return list(self._tallies)
