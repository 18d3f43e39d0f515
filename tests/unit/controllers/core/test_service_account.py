"""The default ServiceAccount: a carried-out plan leaves none to make."""

from __future__ import annotations

from skerry.controllers.core.service_account import Observed, decide
from skerry.logic.machinery.plan import Create
from tests.kit.core_objects import NAMESPACE


def test_a_missing_account_is_made_in_its_cluster_and_a_present_one_left() -> None:
    (action,) = decide(Observed(NAMESPACE, False)).actions
    assert isinstance(action, Create)
    assert (action.target.cluster, action.target.namespace) == ("root", "ns")
    assert not decide(Observed(NAMESPACE, True))
