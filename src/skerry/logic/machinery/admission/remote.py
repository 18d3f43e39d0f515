"""Judging in another process: what is sent there, and what comes back.

A worker cannot ask the authorizer. It answers with the question instead, and is asked again with
the verdict; a policy's budget bounds how often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from skerry.api.objects import Object
from skerry.logic.machinery.admission.environment import Check, Verdict
from skerry.logic.machinery.admission.evaluation import Denial, Inputs, Outcome, judge
from skerry.logic.machinery.admission.policies import policy_of

# Questions and their answers so far.
Verdicts = list[tuple[Check, Verdict]]


class _Unanswered(Exception):
    """A decision of the authorizer is needed."""

    def __init__(self, check: Check) -> None:
        super().__init__()
        self.check = check


def encoded(
    policy: Object, inputs: Inputs, params: Object | None, verdicts: Verdicts
) -> list[bytes]:
    """Return the documents that ``judged`` takes."""
    seen = {
        "object": inputs.object,
        "old_object": inputs.old_object,
        "request": inputs.request,
        "namespace": inputs.namespace,
        "params": params,
    }
    answered = [(asdict(check), asdict(verdict)) for check, verdict in verdicts]
    return [orjson.dumps(policy), orjson.dumps(seen), orjson.dumps(answered)]


def judged(policy: Object, seen: Object, verdicts: Sequence[Sequence[Any]]) -> str:
    """Return as JSON what *policy* says, or the question that must be answered first."""
    known = {_check(check): Verdict(**verdict) for check, verdict in verdicts}

    def decide(check: Check) -> Verdict:
        verdict = known.get(check)
        if verdict is None:
            raise _Unanswered(check)
        return verdict

    params = seen.pop("params")
    try:
        outcome = judge(policy_of(policy), Inputs(**seen), params, decide)
    except _Unanswered as unanswered:
        return orjson.dumps({"ask": asdict(unanswered.check)}).decode()
    denials = [asdict(denial) for denial in outcome.denials]
    return orjson.dumps({"denials": denials, "annotations": outcome.annotations}).decode()


def decoded(text: bytes) -> Outcome | Check:
    """Return what ``judged`` said: an outcome, or a question to the authorizer."""
    answer = orjson.loads(text)
    if "ask" in answer:
        return _check(answer["ask"])
    denials = [Denial(**each) for each in answer["denials"]]
    return Outcome(denials, [(key, value) for key, value in answer["annotations"]])


def _check(raw: Mapping[str, Any]) -> Check:
    account = raw.get("account")
    return Check(**{**raw, "account": None if account is None else tuple(account)})
