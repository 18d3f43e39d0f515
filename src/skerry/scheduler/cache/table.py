"""All nodes in arrays, one row each.

Columns are int64 so that sums of bytes never wrap. Label values and whole taint lists are
interned: a node's row holds small numbers, and any rule over labels or taints is worked out once
per distinct value and then gathered. Columns for labels and extended resources appear when first
asked for. Everything is kept up to date as nodes and pods come and go; nothing is rescanned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skerry.api.objects import Object
from skerry.kit.invariant import invariant
from skerry.logic.machinery.selectors import Requirement, Selector
from skerry.logic.machinery.taints import Taint
from skerry.scheduler.cache.counts import PodCounts
from skerry.scheduler.cache.label_column import LabelColumn
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.terms import NodeRequirement, NodeTerm
from skerry.scheduler.table import ChangeLog, Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_FIRST_CAPACITY = 64
# Above every priority a pod can have.
NO_PRIORITY = 2**62


class NodeTable:
    """Rows of nodes; see the module's theory."""

    def __init__(self) -> None:
        self.target_log = ChangeLog()
        self.placed_log = ChangeLog()
        self.counts = PodCounts(self.label)
        self._capacity = _FIRST_CAPACITY
        self._nodes: list[NodeInfo | None] = [None] * self._capacity
        self._free: list[int] = list(range(self._capacity - 1, -1, -1))
        self._row_of: dict[str, int] = {}
        self.live: Bools = np.zeros(self._capacity, np.bool_)
        self.unschedulable: Bools = np.zeros(self._capacity, np.bool_)
        self.allocatable: dict[str, Ints] = {}
        self.requested: dict[str, Ints] = {}
        self.nonzero_cpu: Ints = np.zeros(self._capacity, np.int64)
        self.nonzero_memory: Ints = np.zeros(self._capacity, np.int64)
        self.pod_count: Ints = np.zeros(self._capacity, np.int64)
        self.pods_allowed: Ints = np.zeros(self._capacity, np.int64)
        # The least important pod on each row; preemption need not look where none is lesser.
        self.lowest_priority: Ints = np.full(self._capacity, NO_PRIORITY, np.int64)
        self.taint_lists: list[tuple[Taint, ...]] = []
        self._taint_index: dict[tuple[Taint, ...], int] = {}
        self.taint_list: NDArray[np.int32] = np.zeros(self._capacity, np.int32)
        self._labels: dict[str, LabelColumn] = {}
        # Image name → rows that have it → size there.
        self.images: dict[str, dict[int, int]] = {}
        # Rows with any host port taken: the only ones a new host port can clash on.
        self.rows_with_ports: set[int] = set()
        self._rows: Rows | None = None
        self._order: Rows | None = None

    @property
    def capacity(self) -> int:
        return self._capacity

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, name: str) -> bool:
        return name in self._row_of

    def rows(self) -> Rows:
        if self._rows is None:
            self._rows = np.flatnonzero(self.live)
        return self._rows

    def row(self, name: str) -> int | None:
        return self._row_of.get(name)

    def target(self, row: int) -> NodeInfo:
        node = self._nodes[row]
        if node is None:
            raise LookupError(f"row {row} holds no node")
        return node

    def get(self, name: str) -> NodeInfo | None:
        row = self._row_of.get(name)
        return None if row is None else self._nodes[row]

    def nodes(self) -> list[NodeInfo]:
        """Return the live nodes by row."""
        return [node for node in self._nodes if node is not None]

    def order(self) -> Rows:
        """Return rows as nodes are visited when not all are: round-robin over zones."""
        if self._order is None:
            zones: dict[str, list[int]] = {}
            for node in self.nodes():
                zones.setdefault(node.zone, []).append(node.row)
            self._order = np.array(_round_robin(list(zones.values())), np.int64)
        return self._order

    def set_node(self, node: Object) -> NodeInfo:
        """Add a node, or take over a new description of it."""
        name = node["metadata"]["name"]
        row = self._row_of.get(name)
        if row is None:
            info = self._take_row(node)
            self.counts.relabelled()
        else:
            info = self.target(row)
            before = _description(info)
            self._forget_images(info)
            info.describe(node)
            # Heartbeats change nothing a decision depends on; nobody need look at them.
            if before == _description(info):
                self._remember_images(info)
                return info
            if before[0] != info.labels:
                self.counts.relabelled()
        self._describe(info)
        return info

    def _take_row(self, node: Object) -> NodeInfo:
        if not self._free:
            self._grow()
        row = self._free.pop()
        info = NodeInfo(node, row)
        self._nodes[row] = info
        self._row_of[info.name] = row
        self.live[row] = True
        return info

    def _describe(self, info: NodeInfo) -> None:
        row = info.row
        self.unschedulable[row] = info.unschedulable
        self.pods_allowed[row] = info.pods_allowed
        for name in info.allocatable.keys() - self.allocatable.keys():
            self.allocatable[name] = np.zeros(self._capacity, np.int64)
        for name, column in self.allocatable.items():
            column[row] = info.allocatable.get(name, 0)
        self.taint_list[row] = self._taints(info.taints)
        for label in self._labels.values():
            label.set(row, info.labels.get(label.key))
            self._count_unlabelled(label)
        self._remember_images(info)
        self._rows = self._order = None
        self.target_log.append(row)

    def _remember_images(self, info: NodeInfo) -> None:
        for image, size in info.images.items():
            self.images.setdefault(image, {})[info.row] = size

    def _taints(self, taints: tuple[Taint, ...]) -> int:
        code = self._taint_index.get(taints)
        if code is None:
            code = self._taint_index[taints] = len(self.taint_lists)
            self.taint_lists.append(taints)
        return code

    def remove_node(self, name: str) -> list[PodInfo]:
        """Free the node's row and return the pods that were on it."""
        row = self._row_of.pop(name)
        info = self.target(row)
        pods = list(info.pods.values())
        for pod in pods:
            self.displace(pod.uid, name=info)
        self._forget_images(info)
        for label in self._labels.values():
            label.set(row, None)
            self._count_unlabelled(label)
        self._nodes[row] = None
        self.live[row] = False
        self._free.append(row)
        self._rows = self._order = None
        self.counts.relabelled()
        self.target_log.append(row)
        return pods

    def _forget_images(self, info: NodeInfo) -> None:
        for image in info.images:
            holders = self.images.get(image)
            if holders is not None:
                holders.pop(info.row, None)
                if not holders:
                    del self.images[image]

    def place(self, pod: PodInfo, info: NodeInfo) -> None:
        """Put *pod* on the node."""
        invariant(pod.uid not in info.pods, f"pod {pod.key} placed twice on {info.name}")
        info.add(pod)
        self._account(pod, info, 1)

    def displace(self, uid: str, name: NodeInfo) -> PodInfo | None:
        """Take the pod off the node."""
        pod = name.remove(uid)
        if pod is not None:
            self._account(pod, name, -1)
        return pod

    def _account(self, pod: PodInfo, info: NodeInfo, sign: int) -> None:
        row, spec = info.row, pod.spec
        for resource, value in spec.requests.items():
            column = self.requested.get(resource)
            if column is None:
                column = self.requested[resource] = np.zeros(self._capacity, np.int64)
            column[row] += sign * value
        self.nonzero_cpu[row] = info.nonzero_cpu
        self.nonzero_memory[row] = info.nonzero_memory
        self.pod_count[row] = len(info.pods)
        self._account_priority(pod, info, sign)
        if spec.ports:
            (self.rows_with_ports.add if info.ports else self.rows_with_ports.discard)(row)
        self.counts.account(pod, row, sign)
        self.placed_log.append(row)

    def _account_priority(self, pod: PodInfo, info: NodeInfo, sign: int) -> None:
        lowest, priority = self.lowest_priority[info.row], pod.spec.priority
        if sign > 0:
            if priority < lowest:
                self.lowest_priority[info.row] = priority
        elif priority == lowest:
            others = (other.spec.priority for other in info.pods.values())
            self.lowest_priority[info.row] = min(others, default=NO_PRIORITY)

    def label(self, key: str) -> LabelColumn:
        """Return the column of a label key, made on first use."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(key, self._capacity)
            for info in self.nodes():
                column.set(info.row, info.labels.get(key))
            self._count_unlabelled(column)
        return column

    def _count_unlabelled(self, column: LabelColumn) -> None:
        column.unlabelled = len(self._row_of) - column.labelled

    def resource(self, columns: dict[str, Ints], name: str) -> Ints:
        """Return the column of a resource, zeros when nobody has it."""
        column = columns.get(name)
        if column is None:
            column = columns[name] = np.zeros(self._capacity, np.int64)
        return column

    def matching(self, requirement: NodeRequirement, rows: Rows) -> Bools:
        """Return which rows satisfy a pod's demands of its node."""
        mask = np.ones(len(rows), np.bool_)
        for key, value in requirement.selector:
            column = self.label(key)
            mask &= column.codes[rows] == column.index.get(value, -2)
        if requirement.terms is not None:
            either = np.zeros(len(rows), np.bool_)
            for term in requirement.terms:
                either |= self.matching_term(term.term, rows)
            mask &= either
        return mask

    def matching_term(self, term: NodeTerm, rows: Rows) -> Bools:
        """Return which rows satisfy one term."""
        if term.empty:
            return np.zeros(len(rows), np.bool_)
        mask = np.ones(len(rows), np.bool_)
        for requirement in term.labels:
            mask &= self.label(requirement.key).mask(requirement, rows)
        for requirement in term.names:
            mask &= self._matching_names(requirement, rows)
        return mask

    def _matching_names(self, requirement: Requirement, rows: Rows) -> Bools:
        selector = Selector([requirement])
        found = (selector.matches({requirement.key: self.target(r).name}) for r in rows.tolist())
        return np.fromiter(found, np.bool_, len(rows))

    def _grow(self) -> None:
        old, new = self._capacity, self._capacity * 2
        self._capacity = new
        self._nodes.extend([None] * old)
        self._free = list(range(new - 1, old - 1, -1))
        for name in (
            "live",
            "unschedulable",
            "nonzero_cpu",
            "nonzero_memory",
            "pod_count",
            "pods_allowed",
            "taint_list",
        ):
            setattr(self, name, _doubled(getattr(self, name)))
        unset = np.full(old, NO_PRIORITY, np.int64)
        self.lowest_priority = np.concatenate([self.lowest_priority, unset])
        for columns in (self.allocatable, self.requested):
            for key, column in columns.items():
                columns[key] = np.concatenate([column, np.zeros(old, np.int64)])
        for label in self._labels.values():
            label.grow(new)
        self.counts.grow(new)


def _description(info: NodeInfo) -> tuple[object, ...]:
    return (info.labels, info.taints, info.unschedulable, info.allocatable, info.images)


def _doubled(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.concatenate([array, np.zeros_like(array)])


def _round_robin(lists: Sequence[Sequence[int]]) -> list[int]:
    max_rows = max(map(len, lists), default=0)
    return [rows[i] for i in range(max_rows) for rows in lists if i < len(rows)]
