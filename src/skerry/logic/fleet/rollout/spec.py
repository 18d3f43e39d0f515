"""A Rollout's wishes, read once: durations in seconds, portions as numbers, selectors compiled.

The schema refuses most of what is wrong; ``spec_errors`` is what it cannot say. On a hub that does
not ask it (a foreign one), the edge scheduler does, and the condition ``Valid`` repeats it.

A percentage is rounded up where it permits (``until``, ``concurrency``, ``maxUnavailable``), since
2 % of ten edges that meant nobody would stop a rollout for good, and down where it must not be
exceeded (``failures.max``). A rollout fails when it exceeds both limits of ``failures``: the number
spares small fleets, of which one edge is more than any percentage, and the percentage large ones.

    ``max: 2%, above: 3``    of 10 or 100, the fourth Bad fails it; of 500 the eleventh
    ``above: 3`` alone       the fourth, of however many
    neither                  the first

What cannot be read is as if it were not there, so that all errors are found in one reading; while
there are any, nothing is assigned.

Waves are cumulative: ``until: 20%`` means that a fifth of those selected have the target when the
wave is full, whichever wave brought them there. A wave whose ``until`` is not above that of an
earlier one with the same selector would add nobody and pass at once, with its soak and its approval
for nothing; that is refused. Waves of different selectors, or one in numbers and one in percent,
cannot be compared without knowing the fleet, and are let through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from skerry.api.errors import FieldError
from skerry.kit.text import whole_number
from skerry.logic.fleet.placement.terms import Terms, read_selector
from skerry.logic.fleet.rollout.expression import ExpressionError, Predicate, predicate
from skerry.logic.machinery.durations import DurationError, parse_duration

_SECOND: Final = 1_000_000_000

REPORTS: Final = "reports"
ROWS: Final = "rows"

# As in the schema; for objects that were stored without its defaults.
MIN_READY: Final = "30s"
DEADLINE: Final = "15m"
OFFLINE_AFTER: Final = "5m"
CONCURRENCY: Final = "10%"
PACING: Final = 50


@dataclass(frozen=True, slots=True)
class Portion:
    """A number of destinations, or a percentage of however many there are."""

    number: int
    percent: bool = False

    def of(self, total: int) -> int:
        """Return the number; a percentage is rounded up, so that it never means nobody."""
        return -(-total * self.number // 100) if self.percent else self.number

    def floor(self, total: int) -> int:
        """Return the number; a percentage is rounded down, as suits what must not be exceeded."""
        return total * self.number // 100 if self.percent else self.number


@dataclass(frozen=True, slots=True)
class Wave:
    """A wave. ``until`` None: everybody selected; ``selector`` empty: everybody.

    ``soak`` is in seconds, which count only while nothing gets worse; ``approval`` is asked after.
    """

    name: str
    selector: Terms = ()
    until: Portion | None = None
    spread_by: tuple[str, ...] = ()
    soak: float = 0.0
    approval: bool = False


@dataclass(frozen=True, slots=True)
class Failures:
    """How many may be Bad. None: that limit allows none, and the other one decides."""

    max: Portion | None = None
    above: int = 0

    def exceeded(self, bad: int, total: int) -> bool:
        """Tell whether more are Bad than both limits allow."""
        portion = self.max.floor(total) if self.max is not None else 0
        return bad > portion and bad > self.above


@dataclass(frozen=True, slots=True)
class Check:
    """A StatusQuery, and what must hold of its rows."""

    query: str
    holds: Predicate


@dataclass(frozen=True, slots=True)
class Judge:
    """What is good; durations in seconds."""

    min_ready: float = 30.0
    deadline: float = 900.0
    failures: Failures = Failures()
    evidence: int = 1
    fail_when: Predicate | None = None
    checks: tuple[Check, ...] = ()
    external: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pace:
    """How many may be in flight and unwell, everywhere and in each group of ``per``.

    ``per`` are label keys of Locations: each value of each key is a group with limits of its own,
    and whoever is assigned has to find room in all of its groups.
    """

    concurrency: Portion = Portion(10, percent=True)
    max_unavailable: Portion = Portion(10, percent=True)
    per: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RolloutSpec:
    """A Rollout's wishes. With ``errors`` nothing moves.

    ``force`` is a revision that everybody gets at once, past waves and verdicts; 0 for none.
    """

    waves: tuple[Wave, ...] = ()
    pace: Pace = Pace()
    judge: Judge = Judge()
    offline_after: float = 300.0
    offline_policy: str = "Defer"
    join_pace: Portion = Portion(PACING)
    leave_pace: Portion = Portion(PACING)
    on_failure: str = "Rollback"
    supersede: str = "Replace"
    paused: bool = False
    force: int = 0
    force_reason: str = ""
    errors: tuple[FieldError, ...] = ()

    def wave(self, number: int) -> Wave:
        """Return a wave by its number from 1; the last one holds everybody.

        It is not in the spec, so a Rollout without waves has one: everybody, as the pace allows.
        """
        return self.waves[number - 1] if 0 < number <= len(self.waves) else LAST

    @property
    def last(self) -> int:
        """The number of the last wave."""
        return len(self.waves) + 1


LAST: Final = Wave("")


class _Reading:
    """Reads members of a spec and gathers what is wrong with them.

    Each method returns something usable for what it cannot read, so that reading goes on.
    """

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def duration(self, value: Any, path: str, default: str) -> float:
        text = default if value is None else value
        try:
            nanoseconds = parse_duration(str(text))
        except DurationError as error:
            self.errors.append(FieldError.invalid(path, text, str(error)))
            return 0.0
        if nanoseconds < 0:
            self.errors.append(FieldError.invalid(path, text, "a duration must not be negative"))
        return max(nanoseconds, 0) / _SECOND

    def portion(self, value: Any, path: str, default: int | str) -> Portion:
        given = default if value is None else value
        if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
            return Portion(given)
        text = str(given)
        percent = whole_number(text[:-1]) if text.endswith("%") else None
        if percent is not None and 1 <= percent <= 100:
            return Portion(percent, percent=True)
        wanted = "want a number from 1 on, or a percentage from 1% to 100%"
        self.errors.append(FieldError.invalid(path, given, wanted))
        return Portion(1)

    def predicate(self, value: Any, path: str, variable: str) -> Predicate | None:
        try:
            return predicate(str(value), variable)
        except ExpressionError as error:
            self.errors.append(FieldError.invalid(path, value, str(error)))
            return None

    def selector(self, value: Any, path: str) -> Terms:
        if value is None:
            return ()
        read = read_selector(value, path)
        self.errors += [FieldError.invalid(path, value, each) for each in read.errors]
        return read.terms or ()

    # -- parts ---------------------------------------------------------------------------------

    def waves(self, given: Any) -> tuple[Wave, ...]:
        found: list[Wave] = []
        for number, each in enumerate(given or ()):
            path = f"spec.waves[{number}]"
            until = each.get("until")
            wave = Wave(
                each.get("name", ""),
                self.selector(each.get("selector"), f"{path}.selector"),
                None if until is None else self.portion(until, f"{path}.until", 1),
                tuple(each.get("spreadBy") or ()),
                self.duration(each.get("soak"), f"{path}.soak", "0s"),
                bool(each.get("approval")),
            )
            self._compare(wave, found, f"{path}.until")
            found.append(wave)
        return tuple(found)

    def _compare(self, wave: Wave, earlier: list[Wave], path: str) -> None:
        """Complain of a wave that adds nobody to one before with the same selector."""
        for other in earlier:
            if other.selector != wave.selector:
                continue
            if other.until is None:
                text = f"wave {other.name!r} holds everybody of this selector already"
                self.errors.append(FieldError.invalid(path, _shown(wave.until), text))
            elif (
                wave.until is not None
                and wave.until.percent == other.until.percent
                and wave.until.number <= other.until.number
            ):
                text = f"waves are cumulative; want more than {_shown(other.until)}"
                text += f" of wave {other.name!r}"
                self.errors.append(FieldError.invalid(path, _shown(wave.until), text))

    def judge(self, given: Mapping[str, Any]) -> Judge:
        failures = given.get("failures") or {}
        allowed = failures.get("max")
        fail_when = given.get("failWhen")
        checks: list[Check] = []
        for number, each in enumerate(given.get("checks") or ()):
            holds = self.predicate(
                each.get("holds", ""), f"spec.judge.checks[{number}].holds", ROWS
            )
            if holds is not None:
                checks.append(Check(each.get("query", ""), holds))
        return Judge(
            self.duration(given.get("minReady"), "spec.judge.minReady", MIN_READY),
            self.duration(given.get("deadline"), "spec.judge.deadline", DEADLINE),
            Failures(
                None if allowed is None else self.portion(allowed, "spec.judge.failures.max", 1),
                int(failures.get("above") or 0),
            ),
            int(given.get("evidence") or 1),
            None
            if fail_when is None
            else self.predicate(fail_when, "spec.judge.failWhen", REPORTS),
            tuple(checks),
            tuple(given.get("external") or ()),
        )

    def pace(self, given: Mapping[str, Any]) -> Pace:
        return Pace(
            self.portion(given.get("concurrency"), "spec.pace.concurrency", CONCURRENCY),
            self.portion(given.get("maxUnavailable"), "spec.pace.maxUnavailable", CONCURRENCY),
            tuple(given.get("per") or ()),
        )


def read_spec(spec: Mapping[str, Any]) -> RolloutSpec:
    """Read a Rollout's ``spec``."""
    reading = _Reading()
    offline, force = spec.get("offline") or {}, spec.get("force") or {}
    joins, leaves = spec.get("joining") or {}, spec.get("leaving") or {}
    found = RolloutSpec(
        reading.waves(spec.get("waves")),
        reading.pace(spec.get("pace") or {}),
        reading.judge(spec.get("judge") or {}),
        reading.duration(offline.get("after"), "spec.offline.after", OFFLINE_AFTER),
        offline.get("policy") or "Defer",
        reading.portion(joins.get("concurrency"), "spec.joining.concurrency", PACING),
        reading.portion(leaves.get("concurrency"), "spec.leaving.concurrency", PACING),
        spec.get("onFailure") or "Rollback",
        spec.get("supersede") or "Replace",
        bool(spec.get("paused")),
        int(force.get("revision") or 0),
        str(force.get("reason") or ""),
    )
    return replace(found, errors=tuple(reading.errors)) if reading.errors else found


def spec_errors(rollout: Mapping[str, Any]) -> list[FieldError]:
    """Return the errors in a Rollout that its schema cannot find."""
    return list(read_spec(rollout.get("spec") or {}).errors)


def _shown(portion: Portion | None) -> str | int:
    if portion is None:
        return "all"
    return f"{portion.number}%" if portion.percent else portion.number
