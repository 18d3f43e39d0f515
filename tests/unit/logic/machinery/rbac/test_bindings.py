"""Bindings that change in steps: at every step exactly the old or exactly the new one holds."""

from __future__ import annotations

import pytest

from skerry.api.objects import Object
from skerry.kit.steps import Steps, finished
from skerry.logic.machinery.rbac.bindings import Binding, Bindings, RoleKey
from tests.kit.counting import growth
from tests.kit.machinery.roles import binding, group, user

MANY = 2000


class Changes:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def reached(bindings: Bindings, name: str, namespace: str = "") -> list[str]:
    return [found.role_name for found, _ in bindings.reaching(name, (), namespace)]


def users(*numbers: int) -> list[Object]:
    return [user(f"u{i}") for i in numbers]


def made(role: str, subjects: list[Object], namespace: str = "") -> Binding:
    return Binding.of(binding("b", "ClusterRole", role, *subjects, namespace=namespace))


def states(bindings: Bindings, steps: Steps[None], *names: str) -> list[tuple[bool, ...]]:
    """Return who is reached after each step."""

    def now() -> tuple[bool, ...]:
        return tuple(bool(reached(bindings, name)) for name in names)

    return [*(now() for _ in steps), now()]


def test_a_new_binding_reaches_nobody_until_all_of_it_is_there() -> None:
    changes = Changes()
    bindings = Bindings(changes)
    seen = states(bindings, bindings.putting(made("r", users(*range(MANY)))), "u0", "u1999")
    assert len(seen) > 2
    assert seen == [(False, False)] * (len(seen) - 1) + [(True, True)]
    assert changes.count == 1


def test_whom_a_changed_binding_names_before_and_after_it_reaches_all_the_time() -> None:
    bindings = Bindings(Changes())
    finished(bindings.putting(made("r", users(*range(MANY)))))
    narrowed = bindings.putting(made("r", users(*range(1, MANY))))
    seen = states(bindings, narrowed, "u0", "u1")
    assert {kept for _, kept in seen} == {True}
    lost = [gone for gone, _ in seen]
    assert lost == sorted(lost, reverse=True), "once lost, a right does not come back"
    assert not lost[-1]


@pytest.mark.parametrize("subjects", [1, MANY])
def test_a_removed_binding_reaches_nobody_from_its_first_step(subjects: int) -> None:
    changes = Changes()
    bindings = Bindings(changes)
    finished(bindings.putting(made("r", users(*range(subjects)))))
    names = [f"u{i}" for i in range(subjects)]
    removing = bindings.removing(RoleKey("", "b"))
    next(removing, None)
    assert changes.count == 2
    assert not any(reached(bindings, name) for name in names)
    finished(removing)
    assert not bindings._reach


def test_a_change_is_notified_in_the_step_in_which_it_counts() -> None:
    changes = Changes()
    bindings = Bindings(changes)
    finished(bindings.putting(made("r", users(*range(MANY)))))
    replacing = bindings.putting(made("s", users(*range(MANY))))
    noted = {(changes.count, *reached(bindings, "u5")) for _ in replacing}
    assert noted == {(1, "r"), (2, "s")}
    assert not any(len(found) > 1 for found in bindings._reach.values())


def test_what_says_the_same_changes_nothing() -> None:
    changes = Changes()
    bindings = Bindings(changes)
    finished(bindings.putting(made("r", [*users(1), group("g")])))
    finished(bindings.putting(made("r", [*users(1), group("g")])))
    assert changes.count == 1


def test_subjects_that_cannot_be_read_reach_nobody() -> None:
    bindings = Bindings(Changes())
    strange: list[Object] = [{"kind": "User", "name": 7}, {"kind": "User", "name": None}]
    finished(bindings.putting(made("r", [*strange, *users(3)])))
    assert reached(bindings, "u3") == ["r"]
    assert reached(bindings, "") == []


def test_taking_in_and_clearing_take_work_in_proportion_to_the_subjects() -> None:
    def replaced(count: int) -> Bindings:
        bindings = Bindings(Changes())
        finished(bindings.putting(made("r", users(*range(count)))))
        finished(bindings.putting(made("s", users(*range(count)))))
        return bindings

    assert growth(lambda n: lambda: replaced(n), 1000) < 2.3
