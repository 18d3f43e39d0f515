"""Edges as they are kept on disk."""

from __future__ import annotations

from pathlib import Path

from skerry.app.edge_config import plain_config
from skerry.app.edge_process import EdgeHome


def test_equally_named_edges_of_two_homes_take_different_ports(tmp_path: Path) -> None:
    ports = set()
    for home in ("one", "two"):
        edge = EdgeHome(tmp_path / home).edge("florin")
        edge.create(plain_config("florin"))
        ports.add(edge.config.api_port)
    assert len(ports) == 2
