"""Making room, the simple way: every trial is a world of its own, judged from scratch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from skerry.api.objects import Object
from skerry.logic.machinery.selectors import Selector
from tests.kit.scheduler.reference import World, labels_of, name_of, namespace_of
from tests.kit.scheduler.reference_decision import Refusal, priority_of, refused, schedule

# What no eviction can cure.
INCURABLE = (
    "node(s) were unschedulable",
    "node(s) didn't match the requested node name",
    "node(s) had untolerated taint",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match scheduler-enforced node affinity",
    "node(s) didn't satisfy plugin(s)",
    "node(s) had volume node affinity conflict",
    "node(s) didn't find available persistent volumes",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s)",
    "node(s) had no available volume zone",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't match pod affinity rules",
)


@dataclass
class Room:
    """What evicting pods on one node takes."""

    victims: list[Object]
    violations: int

    def harm(self) -> tuple[int, int, int, int]:
        """Return what decides between nodes, but for when victims started."""
        priorities = [priority_of(victim) for victim in self.victims]
        shifted = sum(priority + 2**31 for priority in priorities)
        return self.violations, max(priorities), shifted, len(self.victims)

    def youngest(self) -> str:
        """Return when the first of the most important victims started; later is better."""
        top = max(map(priority_of, self.victims))
        return min(started(victim) for victim in self.victims if priority_of(victim) == top)


def started(pod: Object) -> str:
    # A pod that has not started counts as started just now.
    return (pod.get("status") or {}).get("startTime") or "~"


def curable(found: Refusal) -> bool:
    return not any(reason.startswith(INCURABLE) for reason in found[1])


def rooms(world: World, pod: Object) -> tuple[dict[str, Room], dict[str, str]]:
    """Return where room can be made, and for every other node why not."""
    found: dict[str, Room] = {}
    reasons: dict[str, str] = {}
    refusals = schedule(world, pod).refusals
    for node in world.nodes:
        said = refusals.get(name_of(node))
        if said is None or not curable(said):
            reasons[name_of(node)] = "Preemption is not helpful for scheduling"
            continue
        room = room_on(world, pod, node)
        if isinstance(room, str):
            reasons[name_of(node)] = room
        else:
            found[name_of(node)] = room
    return found, reasons


def room_on(world: World, pod: Object, node: Object) -> Room | str:
    lesser = [other for other in world.on(node) if priority_of(other) < priority_of(pod)]
    if not lesser:
        return "No preemption victims found for incoming pod"
    trial = without(world, lesser)
    said = refused(trial, pod, node)
    if said is not None:
        return ", ".join(said[1])
    lesser.sort(key=lambda other: (-priority_of(other), started(other)))
    violating = breaking_budgets(world, lesser)
    victims: list[Object] = []
    for other in [*violating, *(each for each in lesser if each not in violating)]:
        back = replace(trial, pods=[*trial.pods, (other, name_of(node))])
        if refused(back, pod, node) is None:
            trial = back
        else:
            victims.append(other)
    return Room(
        sorted(victims, key=lambda other: (-priority_of(other), started(other))),
        sum(victim in violating for victim in victims),
    )


def without(world: World, gone: list[Object]) -> World:
    return replace(world, pods=[(pod, home) for pod, home in world.pods if pod not in gone])


def breaking_budgets(world: World, pods: list[Object]) -> list[Object]:
    """Return those whose eviction, one after the other, some budget does not allow."""
    left = {name_of(item): item["status"]["disruptionsAllowed"] for item in world.budgets}
    found = []
    for pod in pods:
        broken = False
        for budget in world.budgets:
            chosen = Selector.from_label_selector(budget["spec"]["selector"])
            counted = name_of(pod) in (budget["status"].get("disruptedPods") or {})
            covers = (
                budget["metadata"]["namespace"] == namespace_of(pod)
                and bool(labels_of(pod))
                and not chosen.empty
                and chosen.matches(labels_of(pod))
            )
            if covers and not counted:
                left[name_of(budget)] -= 1
                broken = broken or left[name_of(budget)] < 0
        if broken:
            found.append(pod)
    return found
