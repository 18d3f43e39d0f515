"""Picking several targets at once: the best ones, evenly over groups, without needless moves.

A pod goes to one node; a placement that asks for *N* locations wants the N best of those feasible,
spread over the values of some label, and keeps what it has as long as that is still feasible and
the spread allows it. Pure and deterministic: equal totals go by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set


def choose(
    totals: Mapping[str, int],
    count: int,
    *,
    groups: Mapping[str, str] | None = None,
    present: Set[str] = frozenset(),
) -> list[str]:
    """Return up to *count* names of *totals*, best first.

    With *groups* no group gets a second member while another that has candidates left has fewer.
    Names in *present* go before others of the same group whatever their total: stickiness costs
    score, never spread.
    """
    if count <= 0:
        return []
    ordered = sorted(totals, key=lambda name: (name not in present, -totals[name], name))
    if groups is None:
        return ordered[:count]
    return _spread(ordered, count, groups)


def _spread(ordered: Sequence[str], count: int, groups: Mapping[str, str]) -> list[str]:
    """Deal from the groups in turn; in each round the group with the best candidate goes first."""
    waiting: dict[str, list[str]] = {}
    for name in ordered:
        waiting.setdefault(groups.get(name, ""), []).append(name)
    chosen: list[str] = []
    position = {name: index for index, name in enumerate(ordered)}
    while waiting and len(chosen) < count:
        for group in sorted(waiting, key=lambda group: position[waiting[group][0]]):
            if len(chosen) == count:
                break
            chosen.append(waiting[group].pop(0))
        waiting = {group: names for group, names in waiting.items() if names}
    return chosen
