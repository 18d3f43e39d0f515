"""Requests for certificates: signed once, failed once, otherwise left."""

from __future__ import annotations

import base64
from typing import Any

from skerry.controllers.core.certificates import Observed, decide, is_approved, is_open
from skerry.logic.machinery.certificate_signers import CLIENT
from skerry.logic.machinery.plan import Update

APPROVED = {"type": "Approved", "status": "True"}


def request(*conditions: dict[str, str], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "r"},
        "spec": {"signerName": CLIENT},
        "status": {"conditions": list(conditions), **status},
    }


def written(observed: Observed) -> Update:
    (action,) = decide(observed).actions
    assert isinstance(action, Update)
    return action


def test_a_certificate_is_written_beside_what_was_decided() -> None:
    update = written(Observed(request(APPROVED), certificate=b"PEM"))
    assert update.subresource == "status"
    wanted = {"conditions": [APPROVED], "certificate": base64.b64encode(b"PEM").decode()}
    assert update.object["status"] == wanted


def test_what_cannot_be_signed_has_failed_for_good() -> None:
    update = written(Observed(request(APPROVED), failure="because"))
    failed = update.object["status"]["conditions"][-1]
    assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
    assert failed["message"] == "because"
    assert not is_open(update.object)


def test_an_approval_is_written_where_approvals_are() -> None:
    update = written(Observed(request(), approval="may"))
    assert update.subresource == "approval"
    assert is_approved(update.object)


def test_what_was_signed_denied_or_is_another_signers_is_left() -> None:
    assert is_open(request())
    assert not is_open(request(certificate="x"))
    assert not is_open(request({"type": "Denied"}))
    assert not is_open({**request(), "spec": {"signerName": "example.com/x"}})
    assert not decide(Observed(request()))
