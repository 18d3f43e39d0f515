"""Thousands of generated requests, answered as kube-apiserver 1.32 answered them.

``kube-apiserver-1.32.json.gz`` is what it answered; ``differences.txt`` lists the requests that a
plain server answers differently, and in what. A difference that is not listed is a regression; one
that is listed and gone comes off the list (``python -m tests.kit.differential``, ``--recorded`` and
``--list``). Why they differ is in ``docs/reference/api-compatibility.md``.
"""

from __future__ import annotations

from pathlib import Path

from tests.kit.differential.__main__ import of_ours
from tests.kit.differential.recording import differences, listed, load

HERE = Path(__file__).parent


async def test_what_differs_from_kube_apiserver_is_what_is_listed() -> None:
    theirs = load(HERE / "kube-apiserver-1.32.json.gz")
    ours = await of_ours()
    assert len(ours) > 5000
    known = (HERE / "differences.txt").read_text().splitlines()
    found = listed(differences(ours, theirs)).splitlines()
    assert sorted(set(found) - set(known)) == [], "answered otherwise than before"
    assert sorted(set(known) - set(found)) == [], "answered alike by now: list anew"
    crashed = {name for name, each in ours.items() if each.status == 500}
    assert crashed <= {name for name, each in theirs.items() if each.status == 500}
