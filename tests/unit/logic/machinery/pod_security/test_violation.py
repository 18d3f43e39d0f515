"""The words in which violations name pods and containers."""

from __future__ import annotations

from skerry.logic.machinery.pod_security.violation import (
    Violation,
    containers_named,
    containers_of,
    is_windows,
    security_of,
    setters,
)


def test_a_violation_is_its_reason_and_its_detail_where_there_is_one() -> None:
    assert str(Violation("privileged", "container x")) == "privileged (container x)"
    assert str(Violation("privileged")) == "privileged"


def test_containers_are_in_the_order_kubernetes_names_them() -> None:
    spec = {
        "containers": [{"name": "b"}],
        "ephemeralContainers": [{"name": "c"}],
        "initContainers": [{"name": "a"}],
    }
    assert [container["name"] for container in containers_of(spec)] == ["a", "b", "c"]
    assert list(containers_of({"containers": None})) == []


def test_one_container_or_several_are_named() -> None:
    assert containers_named(["a"]) == 'container "a"'
    assert containers_named(["a", "b"]) == 'containers "a", "b"'


def test_whoever_sets_a_value_is_named() -> None:
    assert setters(True, ["a"]) == ["pod", 'container "a"']
    assert setters(True, []) == ["pod"]
    assert setters(False, []) == []


def test_what_is_not_said_is_empty() -> None:
    assert security_of({"securityContext": None}) == {}
    assert is_windows({"os": {"name": "windows"}})
    assert not is_windows({"os": None})
