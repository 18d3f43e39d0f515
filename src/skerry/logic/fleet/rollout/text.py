"""A Rollout and its revisions in words and tables, for the command line.

Everything is read from the status as a hub has it: nothing is judged again here, and what a hub of
another version has not written is left out. One Rollout that is stuck in its first wave reads

    Rollout web: Progressing revision 42 (stable: 41)
      3 of 40 at the target, 3 good
      wave canary, opened 2026-09-01T14:05:00.000Z
      Stalled=True Held: 4 are not well; 4 may be
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skerry.kit.text import inert_line
from skerry.logic.fleet.rollout.foresight import RolloutForeseen
from skerry.logic.machinery.conditions import find_condition

Rows = list[tuple[str, ...]]


def status_lines(rollout: Mapping[str, Any]) -> list[str]:
    """Return where a rollout stands, most important first.

    A condition has a line only where it is bad news. Below are the destinations that the verdicts
    name, which are some of those that failed and not all.
    """
    status, name = rollout.get("status") or {}, rollout["metadata"]["name"]
    if not status:
        return [f"Rollout {name}: not reconciled yet; is the edge scheduler running?"]
    lines = [_headline(name, status)]
    counts = status.get("counts") or {}
    if counts:
        lines.append(_counted(counts))
    wave = status.get("wave") or {}
    if wave:
        since = wave.get("quietSince")
        quiet = f", quiet since {since}" if since else ""
        lines.append(
            f"  wave {wave.get('name') or '(everybody)'}, opened {wave.get('opened')}{quiet}"
        )
    for kind in ("Valid", "Stalled"):
        found = find_condition(rollout, kind)
        wrong = "False" if kind == "Valid" else "True"
        if found is not None and found.get("status") == wrong:
            lines.append(f"  {kind}={wrong} {found.get('reason')}: {found.get('message')}")
    failure = status.get("failure")
    if failure:
        lines.append(
            f"  revision {failure.get('revision')} failed: {failure.get('reason')}: "
            f"{failure.get('message')}"
        )
    named = (status.get("verdicts") or {}).get("failures") or ()
    lines += (
        f"    {each.get('location')}: {each.get('reason')}: {each.get('message')}" for each in named
    )
    # The message of a failure is in words of its edge.
    return [inert_line(line) for line in lines]


def _headline(name: str, status: Mapping[str, Any]) -> str:
    """Return the phase and the target; the stable revision only where it is another one."""
    stable = status.get("stable")
    back = f" (stable: {stable})" if stable and stable != status.get("target") else ""
    target = f" revision {status['target']}{back}" if status.get("target") else ""
    return f"Rollout {name}: {status.get('phase')}{target}"


def _counted(counts: Mapping[str, Any]) -> str:
    parts = [f"{counts.get('target', 0)} of {counts.get('destinations', 0)} at the target"]
    names = ("good", "bad", "excused", "waiting", "absent")
    parts += [f"{counts[each]} {each}" for each in names if counts.get(each)]
    return f"  {', '.join(parts)}"


def foreseen_lines(found: RolloutForeseen) -> list[str]:
    """Return the rollout that a change would start.

    A wave whose members nobody can know yet has their number alone (``foresight``).
    """
    stable = f" (stable: {found.stable})" if found.stable else ""
    settles = f" when the workspace was quiet for {duration_text(found.settle)}"
    lines = [f"  Rollout {found.name} would start a new revision{stable}{settles}:"]
    for wave in found.waves:
        named = f": {', '.join(wave.names)}" if wave.names else ""
        more = (
            f", and {wave.added - len(wave.names)} more" if 0 < len(wave.names) < wave.added else ""
        )
        turns = f"in {wave.batches} turns" if wave.batches != 1 else "at once"
        gates = [turns]
        if wave.soak:
            gates.append(f"soaks {duration_text(wave.soak)}")
        if wave.approval:
            gates.append("then asks for approval")
        title = f"wave {wave.name}" if wave.name else "everybody else"
        lines.append(f"    {title}: {wave.added}{named}{more}; {', '.join(gates)}")
    if found.absent:
        lines.append(f"    {found.absent} of them are not heard of: they follow when they are back")
    waits = any(wave.approval for wave in found.waves)
    lines.append(
        f"    earliest end: {duration_text(found.seconds)} from now"
        f"{', approvals not counted' if waits else ''}"
    )
    return [*lines, *(f"    ! {each}" for each in found.holds)]


def duration_text(seconds: float) -> str:
    """Return a duration as people say it."""
    whole = round(seconds)
    parts = [(whole // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s")]
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def is_ready(rollout: Mapping[str, Any]) -> bool:
    """Tell whether everybody who can be reached has what the workspace has.

    Like ``is_stalled``, only of the generation that is there: a Rollout that was just edited still
    shows the condition of before, and a tool that waits would end at once.
    """
    return _is(rollout, "Ready")


def is_stalled(rollout: Mapping[str, Any]) -> bool:
    """Tell whether nothing will happen without a person."""
    return _is(rollout, "Stalled")


def _is(rollout: Mapping[str, Any], kind: str) -> bool:
    found = find_condition(rollout, kind)
    generation = rollout["metadata"].get("generation")
    seen = (rollout.get("status") or {}).get("observedGeneration")
    return found is not None and found.get("status") == "True" and seen == generation


def history_rows(rollout: Mapping[str, Any] | None, revisions: Iterable[Mapping[str, Any]]) -> Rows:
    """Return the revisions of a placement, newest first, below their heads."""
    status = (rollout or {}).get("status") or {}
    rows: Rows = [("REVISION", "VERDICT", "ROLE", "CREATED", "OBJECTS", "CHANGED")]
    every = list(revisions)
    first = [each for each in every if _page(each) == 1]
    for each in sorted(first, key=lambda found: -int(found["spec"]["number"])):
        spec, number = each["spec"], each["spec"]["number"]
        roles = [role for role in ("target", "stable") if status.get(role) == number]
        rows.append(
            (
                str(number),
                str((each.get("status") or {}).get("verdict") or "Candidate"),
                ",".join(roles) or "-",
                str(each["metadata"].get("creationTimestamp", "")),
                _object_count(each, every),
                _causes(spec),
            )
        )
    return rows


def _object_count(first: Mapping[str, Any], every: Iterable[Mapping[str, Any]]) -> str:
    """Return how many objects a revision has on all its pages; ``+``: a page is missing.

    What is left of another revision with that number is no page of this one: pages agree on the
    digest.
    """
    spec = first["spec"]
    pages = {
        _page(each): len(each["spec"].get("items") or ())
        for each in every
        if (each["spec"]["number"], each["spec"].get("digest"))
        == (spec["number"], spec.get("digest"))
    }
    wanted = int((spec.get("page") or {}).get("of") or 1)
    return f"{sum(pages.values())}{'+' if len(pages) < wanted else ''}"


def _page(revision: Mapping[str, Any]) -> int:
    return int((revision["spec"].get("page") or {}).get("number") or 1)


def _causes(spec: Mapping[str, Any]) -> str:
    causes: Sequence[Mapping[str, Any]] = spec.get("causes") or ()
    named = [
        f"{item.get('resource')}/{item.get('name')}"
        for each in causes[:3]
        if (item := each.get("item") or {})
    ]
    more = len(causes) - len(named) + int(spec.get("causesOmitted") or 0)
    text = ", ".join(named)
    return (f"{text} and {more} more" if more else text) or "-"
