"""Node selectors and affinity terms, compiled.

All are hashable by what they say, so that pods saying the same share what is computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from skerry.logic.machinery.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_IN,
    Requirement,
    Selector,
)

_OPERATORS = {
    "In": IN,
    "NotIn": NOT_IN,
    "Exists": EXISTS,
    "DoesNotExist": DOES_NOT_EXIST,
    "Gt": GREATER_THAN,
    "Lt": LESS_THAN,
}


class NodeTerm(NamedTuple):
    """A conjunction over a node's labels and its name; one without conditions matches nothing."""

    labels: tuple[Requirement, ...]
    names: tuple[Requirement, ...]

    @property
    def empty(self) -> bool:
        return not self.labels and not self.names


@dataclass(frozen=True, slots=True)
class CompiledTerm:
    """A node term ready to be matched one node at a time."""

    term: NodeTerm
    labels: Selector
    names: Selector

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.term.empty:
            return False
        return self.labels.matches(labels) and self.names.matches({"metadata.name": name})


def node_term(raw: Mapping[str, Any]) -> CompiledTerm:
    """Compile a NodeSelectorTerm."""
    labels = tuple(_requirement(item) for item in raw.get("matchExpressions") or ())
    names = tuple(_requirement(item) for item in raw.get("matchFields") or ())
    return CompiledTerm(NodeTerm(labels, names), Selector(labels), Selector(names))


def _requirement(item: Mapping[str, Any]) -> Requirement:
    operator = item.get("operator", "")
    if operator not in _OPERATORS:
        raise ValueError(f'"{operator}" is not a valid node selector operator')
    values = tuple(sorted(set(item.get("values") or ())))
    if operator in ("Gt", "Lt") and len(values) != 1:
        raise ValueError(
            "values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
        )
    if operator in ("In", "NotIn") and not values:
        raise ValueError(
            "values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
        )
    return Requirement(item.get("key", ""), _OPERATORS[operator], values)


@dataclass(frozen=True, slots=True)
class NodeRequirement:
    """What a pod demands of its node: nodeSelector and one of the required terms."""

    selector: tuple[tuple[str, str], ...] = ()
    # None: no terms are required. An empty tuple would match nothing.
    terms: tuple[CompiledTerm, ...] | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what two equal requirements share."""
        terms = None if self.terms is None else tuple(term.term for term in self.terms)
        return (self.selector, terms)

    @property
    def trivial(self) -> bool:
        return not self.selector and self.terms is None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        for key, value in self.selector:
            if labels.get(key) != value:
                return False
        return self.terms is None or any(term.matches(name, labels) for term in self.terms)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A node term a pod would like."""

    weight: int
    term: CompiledTerm


def node_requirement(spec: Mapping[str, Any]) -> NodeRequirement:
    """Read nodeSelector and required node affinity."""
    selector = tuple(sorted((spec.get("nodeSelector") or {}).items()))
    return NodeRequirement(selector, required_terms(_node_affinity(spec)))


def required_terms(node_affinity: Mapping[str, Any]) -> tuple[CompiledTerm, ...] | None:
    """Read the required terms of a NodeAffinity; None when there are none to satisfy."""
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return None
    return tuple(node_term(term) for term in required.get("nodeSelectorTerms") or ())


def preferred_terms(node_affinity: Mapping[str, Any]) -> tuple[WeightedTerm, ...]:
    """Read the preferred terms; those of weight zero or without conditions say nothing."""
    found = (
        WeightedTerm(int(item.get("weight", 0)), node_term(item.get("preference") or {}))
        for item in node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    )
    return tuple(item for item in found if item.weight and not item.term.term.empty)


def preferred_node_terms(spec: Mapping[str, Any]) -> tuple[WeightedTerm, ...]:
    """Read a pod's preferred node terms."""
    return preferred_terms(_node_affinity(spec))


def _node_affinity(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return found


class AffinityTerm(NamedTuple):
    """Which pods a (anti-)affinity term means, and over which topology."""

    selector: Selector
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Tell whether the term means a pod with these labels in this namespace."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespace_labels
        ):
            return False
        return self.selector.matches(labels)


class WeightedAffinity(NamedTuple):
    """A preferred (anti-)affinity term."""

    weight: int
    term: AffinityTerm


def affinity_term(raw: Mapping[str, Any], namespace: str) -> AffinityTerm:
    """Compile a PodAffinityTerm of a pod in *namespace*, which is meant when none is named."""
    listed = frozenset(raw.get("namespaces") or ())
    selector = raw.get("namespaceSelector")
    if not listed and selector is None:
        listed = frozenset({namespace})
    return AffinityTerm(
        Selector.from_label_selector(raw.get("labelSelector")),
        raw.get("topologyKey", ""),
        listed,
        Selector.from_label_selector(selector),
    )


def required_affinity(
    affinity: Mapping[str, Any], kind: str, namespace: str
) -> tuple[AffinityTerm, ...]:
    """Read required terms; *kind* is ``podAffinity`` or ``podAntiAffinity``."""
    terms = (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(affinity_term(term, namespace) for term in terms or ())


def preferred_affinity(
    affinity: Mapping[str, Any], kind: str, namespace: str
) -> tuple[WeightedAffinity, ...]:
    """Read preferred terms; *kind* as above."""
    terms = (affinity.get(kind) or {}).get("preferredDuringSchedulingIgnoredDuringExecution")
    return tuple(
        WeightedAffinity(
            int(item.get("weight", 0)), affinity_term(item.get("podAffinityTerm") or {}, namespace)
        )
        for item in terms or ()
    )
