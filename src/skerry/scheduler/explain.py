"""Why a pod goes where it goes, or nowhere.

Makes the decision the scheduler would make, and tells for every node the first plugin that turns it
down or its score by plugin. Nothing is assumed or written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skerry.kit.text import inert_lines
from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cycle import Decider, DecisionFailed, Found, Profile


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """One node: refused by *plugin* for *reasons*, or feasible with a score per plugin."""

    node: str
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    scores: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.scores.values())


@dataclass(frozen=True, slots=True)
class Explanation:
    """A whole decision."""

    pod: str
    chosen: str
    message: str
    nodes: tuple[NodeVerdict, ...]

    def text(self) -> str:
        """Return the explanation as people read it: feasible nodes first, the best on top."""
        head = f"pod {self.pod}: " + (f"would go to {self.chosen}" if self.chosen else self.message)
        feasible = sorted((n for n in self.nodes if not n.plugin), key=lambda n: -n.total)
        refused = [node for node in self.nodes if node.plugin]
        lines = [head]
        for node in feasible:
            parts = ", ".join(f"{name} {score}" for name, score in node.scores.items())
            lines.append(f"  {node.node}: {node.total}" + (f" ({parts})" if parts else ""))
        lines += [
            f"  {node.node}: refused by {node.plugin}: {', '.join(node.reasons)}"
            for node in refused
        ]
        return inert_lines(lines)


def explain(cluster: Cluster, decider: Decider, profile: Profile, pod: PodInfo) -> Explanation:
    """Explain the decision for *pod* as things stand."""
    try:
        found = decider.find(profile, pod)
        chosen = decider.choose(profile, pod, found)
    except DecisionFailed as failure:
        return Explanation(pod.key, "", failure.status.message, ())
    verdicts = {**_refusals(cluster, decider, profile, pod, found)}
    verdicts.update(_scores(cluster, decider, profile, pod, found))
    message = "" if chosen else found.diagnosis.message()
    ordered = tuple(verdicts[name] for name in sorted(verdicts))
    return Explanation(pod.key, chosen, message, ordered)


def _refusals(
    cluster: Cluster, decider: Decider, profile: Profile, pod: PodInfo, found: Found
) -> dict[str, NodeVerdict]:
    diagnosis = found.diagnosis
    if len(found.feasible()) and found.evaluation is not None:
        diagnosis = decider.diagnose(profile, pod, found)
    verdicts: dict[str, NodeVerdict] = {}
    for node in cluster.table.nodes():
        status = diagnosis.status_of(node.row)
        if status is not None:
            verdicts[node.name] = NodeVerdict(node.name, status.plugin or "-", status.reasons)
    return verdicts


def _scores(
    cluster: Cluster, decider: Decider, profile: Profile, pod: PodInfo, found: Found
) -> dict[str, NodeVerdict]:
    rows = found.feasible()
    if not len(rows):
        return {}
    by_plugin = decider.scores(profile, pod, found)
    verdicts: dict[str, NodeVerdict] = {}
    for index, row in enumerate(rows.tolist()):
        name = cluster.table.target(row).name
        scores = {plugin: int(points[index]) for plugin, points in by_plugin.items()}
        verdicts[name] = NodeVerdict(name, scores=scores)
    return verdicts
