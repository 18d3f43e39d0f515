"""What the edge said, in the hub's words."""

from __future__ import annotations

import pytest

from skerry.api.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, ServiceUnavailable
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.outcome import refused

REF = ObjectRef("", "apps", "deployments", "shop", "web")


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (Forbidden('User "s" cannot patch resource "deployments"'), "Failed", "EdgeForbidden"),
        (Forbidden("exceeded quota: small"), "Failed", "Rejected"),
        (Conflict("conflict with kubectl"), "Failed", "FieldConflict"),
        (NotFound('namespaces "shop" not found'), "Waiting", "DependencyMissing"),
        (Invalid("spec.replicas: must be a number"), "Failed", "Rejected"),
        (ServiceUnavailable("no room on the disk"), "Failed", "EdgeFailing"),
    ],
)
def test_each_refusal_has_its_reason(error: ApiError, state: str, reason: str) -> None:
    outcome = refused(error, "patch", REF)
    assert (outcome.state, outcome.reason) == (state, reason)


def test_a_missing_right_names_the_rule_that_would_give_it() -> None:
    error = Forbidden('User "s" cannot patch resource "deployments"')
    message = refused(error, "patch", REF).message
    assert message == (
        "the edge must allow patch of deployments in API group apps in namespace 'shop'"
    )


def test_the_rule_is_for_the_verb_that_the_edge_refused() -> None:
    error = Forbidden('User "s" cannot create resource "deployments" in API group "apps"')
    assert "allow create of deployments" in refused(error, "patch", REF).message
