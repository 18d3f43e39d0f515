"""What the labels of a Namespace ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.pod_security.evaluation import violations
from skerry.logic.machinery.pod_security.policy import (
    PREFIX,
    LevelVersion,
    Policy,
    parse_version,
    policy_of,
)
from tests.kit.machinery.pods import container, spec_of


def labels(**values: str) -> dict[str, str]:
    return {f"{PREFIX}{name.replace('_', '-')}": value for name, value in values.items()}


def test_no_labels_ask_for_nothing() -> None:
    policy, errors = policy_of({"team": "a"})
    assert (policy, errors) == (Policy(), [])
    assert policy.is_privileged


def test_each_mode_has_a_level_and_a_version() -> None:
    policy, errors = policy_of(
        labels(enforce="baseline", enforce_version="v1.30", audit="restricted", warn="privileged")
    )
    assert errors == []
    assert str(policy.enforce) == "baseline:v1.30"
    assert str(policy.audit) == "restricted:latest"
    assert str(policy.warn) == "privileged:latest"
    assert not policy.is_privileged


def test_whoever_enforces_is_warned_of_the_same() -> None:
    policy, _ = policy_of(labels(enforce="restricted", enforce_version="v1.31"))
    assert policy.warn == LevelVersion("restricted", 31)
    other, _ = policy_of(labels(enforce="restricted", warn_version="v1.20"))
    assert other.warn == LevelVersion("restricted", 20)
    stricter, _ = policy_of(
        labels(enforce="baseline"), Policy(warn=LevelVersion("restricted", None))
    )
    assert stricter.warn.level == "restricted"


def test_defaults_hold_where_labels_are_silent() -> None:
    defaults = Policy(enforce=LevelVersion("baseline", 30))
    assert policy_of({}, defaults)[0] == defaults
    assert policy_of(labels(enforce="privileged"), defaults)[0].enforce.level == "privileged"


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        (labels(enforce="strict"), "enforce", "must be one of privileged, baseline, restricted"),
        (labels(warn=""), "warn", "must be one of privileged, baseline, restricted"),
        (labels(audit_version="1.30"), "audit-version", 'must be "latest" or "v1.x"'),
        (labels(enforce_version="v2.0"), "enforce-version", 'must be "latest" or "v1.x"'),
        (labels(warn_version="v1.01"), "warn-version", 'must be "latest" or "v1.x"'),
    ],
)
def test_a_label_that_makes_no_sense_is_named(
    given: dict[str, str], field: str, message: str
) -> None:
    _, (error,) = policy_of(given)
    assert error.field == f"metadata.labels[{PREFIX}{field}]"
    assert error.message.endswith(message)


def test_a_wrong_label_refuses_most_and_warns_of_nothing() -> None:
    policy, errors = policy_of(labels(enforce="x", audit="x", warn="x"))
    assert len(errors) == 3
    assert policy.enforce == LevelVersion("restricted", None)
    assert (policy.audit.level, policy.warn.level) == ("privileged", "privileged")


@given(st.integers(min_value=0, max_value=10**8))
def test_versions_are_read_as_they_are_written(minor: int) -> None:
    assert parse_version(f"v1.{minor}") == (True, minor)
    found = LevelVersion("baseline", minor)
    assert parse_version(str(found).partition(":")[2]) == (True, minor)


@given(st.text(max_size=12))
def test_any_text_is_a_version_or_refused(text: str) -> None:
    known, minor = parse_version(text)
    assert known or minor is None


@given(st.integers(min_value=0, max_value=50), st.booleans(), st.booleans(), st.booleans())
def test_restricted_refuses_whatever_baseline_refuses(
    minor: int, privileged: bool, network: bool, path: bool
) -> None:
    volumes = [{"name": "v", "hostPath": {"path": "/"}}] if path else []
    spec = spec_of(container(privileged=privileged), hostNetwork=network, volumes=volumes)
    lenient = violations(LevelVersion("baseline", minor), {}, spec)
    strict = violations(LevelVersion("restricted", minor), {}, spec)
    assert not lenient or len(strict) >= len(lenient)
    assert not violations(LevelVersion("privileged", minor), {}, spec)
