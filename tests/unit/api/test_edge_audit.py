"""Names on exported audit events."""

from __future__ import annotations

from skerry.api import edge_audit


def test_every_name_is_of_our_domain_and_said_once() -> None:
    names = [value for key, value in vars(edge_audit).items() if key.isupper()]
    assert len(names) == len(set(names)) == 13
    assert all(name.startswith("edge.kcp.io/") for name in names)
