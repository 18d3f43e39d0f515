"""Feature gates are had as asked, or refused."""

from __future__ import annotations

import pytest

from skerry.scheduler.config.gates import GateError, known_gates, parse_gates


def test_nothing_asked_means_the_defaults() -> None:
    assert parse_gates("").queueing_hints
    assert parse_gates(" , ").queueing_hints


@pytest.mark.parametrize(("value", "wanted"), [("true", True), ("F", False), ("0", False)])
def test_queueing_hints_can_be_switched(value: str, wanted: bool) -> None:
    assert parse_gates(f"SchedulerQueueingHints={value}").queueing_hints is wanted


def test_the_last_word_counts() -> None:
    text = "SchedulerQueueingHints=false, SidecarContainers=true,SchedulerQueueingHints=true"
    assert parse_gates(text).queueing_hints


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Nope=true", "unrecognized feature gate: Nope"),
        ("SchedulerQueueingHints", "missing bool value for SchedulerQueueingHints"),
        (
            "AllAlpha=yes",
            'invalid value of AllAlpha=yes, err: strconv.ParseBool: parsing "yes": invalid syntax',
        ),
        (
            "DynamicResourceAllocation=true",
            "cannot set feature gate DynamicResourceAllocation to true, feature is locked to false",
        ),
        (
            "PodSchedulingReadiness=false",
            "cannot set feature gate PodSchedulingReadiness to false, feature is locked to true",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(text: str, words: str) -> None:
    with pytest.raises(GateError) as refused:
        parse_gates(text)
    assert str(refused.value) == words


def test_every_gate_takes_the_value_it_is_said_to_have() -> None:
    for name, value in known_gates():
        parse_gates(f"{name}={value.split()[0]}")
