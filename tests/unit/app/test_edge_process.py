"""Edges as they are kept on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from skerry.app.edge_config import plain_config
from skerry.app.edge_process import EdgeError, EdgeHome
from skerry.cli.edge import edge as edge_command


def test_equally_named_edges_of_two_homes_take_different_ports(tmp_path: Path) -> None:
    ports = set()
    for home in ("one", "two"):
        edge = EdgeHome(tmp_path / home).edge("florin")
        edge.create(plain_config("florin"))
        ports.add(edge.config.api_port)
    assert len(ports) == 2


def test_what_pods_may_have_of_the_machine_can_be_changed_and_nothing_else(tmp_path: Path) -> None:
    edge = EdgeHome(tmp_path).edge("florin")
    edge.create(plain_config("florin"))
    assert (edge.config.host_paths, edge.config.host_network) == ((), False)
    allowed = replace(plain_config("florin"), host_paths=("/srv/data",), host_network=True)
    edge.create(allowed)
    assert (edge.config.host_paths, edge.config.host_network) == (("/srv/data",), True)
    with pytest.raises(EdgeError, match="exists with another configuration"):
        edge.create(replace(allowed, runtime="processes"))


def test_an_edge_of_an_earlier_version_allows_nothing(tmp_path: Path) -> None:
    edge = EdgeHome(tmp_path).edge("florin")
    edge.create(plain_config("florin"))
    record = json.loads((edge.directory / "edge.json").read_text())
    del record["hostPaths"], record["hostNetwork"]
    (edge.directory / "edge.json").write_text(json.dumps(record))
    assert (edge.config.host_paths, edge.config.host_network) == ((), False)


def test_a_folder_that_is_no_absolute_path_is_refused(tmp_path: Path) -> None:
    for path in ("srv", "/srv/../etc"):
        words = ["create", "florin", "--data-dir", str(tmp_path / "e"), "--allow-host-path", path]
        done = CliRunner().invoke(edge_command, words)
        assert done.exit_code == 1
        assert not (tmp_path / "e").exists()
