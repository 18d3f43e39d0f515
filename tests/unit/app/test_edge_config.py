"""kind's configuration files, and what an edge keeps of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.app.edge_config import (
    EdgeConfigError,
    load_config,
    parse_config,
    plain_config,
    save_config,
)
from skerry.edge.agent.network import Published

HEAD = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"


def test_the_seeds_configuration_publishes_its_port() -> None:
    text = HEAD + (
        "nodes:\n- role: control-plane\n  extraPortMappings:\n"
        "  - containerPort: 8081\n    hostPort: 8083\n"
    )
    config, ignored = parse_config("guilder", text)
    assert config.published == [Published("guilder-control-plane", 8081, 8083, "127.0.0.1")]
    assert ignored == []
    assert not config.tainted


def test_nodes_are_named_and_tainted_as_kind_does() -> None:
    text = HEAD + "nodes: [{role: control-plane}, {role: worker}, {role: worker}]\n"
    config, _ = parse_config("e", text)
    assert [node.name for node in config.nodes] == ["e-control-plane", "e-worker", "e-worker2"]
    assert config.tainted


def test_what_only_containers_need_is_ignored_by_name() -> None:
    text = HEAD + "featureGates: {A: true}\nnodes: [{role: control-plane, image: x}]\n"
    _, ignored = parse_config("e", text + "networking: {podSubnet: 10.0.0.0/8}\n")
    assert ignored == ["featureGates", "nodes[0].image", "networking.podSubnet"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kind: Pod\n", "want kind.x-k8s.io/v1alpha4, kind Cluster"),
        ("[1]", "want a mapping"),
        (HEAD + "nodes: [{role: boss}]", r"nodes\[0\].role: 'boss'"),
        (HEAD + "nodes: [{role: worker}]", "at least one with role control-plane"),
        (
            HEAD + "nodes: [{extraPortMappings: [{containerPort: 0, hostPort: 1}]}]",
            r"containerPort: 0: want a port",
        ),
        (
            HEAD + "nodes: [{extraPortMappings: [{containerPort: 1, hostPort: 2, protocol: UDP}]}]",
            "only TCP",
        ),
        (
            HEAD + "nodes: [{extraPortMappings: [{containerPort: 1, hostPort: 2},"
            " {containerPort: 3, hostPort: 2}]}]",
            "published twice",
        ),
    ],
)
def test_a_fault_is_named_with_its_field(text: str, fault: str) -> None:
    with pytest.raises(EdgeConfigError, match=fault):
        parse_config("e", text)


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    text = HEAD + "nodes: [{extraPortMappings: [{containerPort: 1, hostPort: 2}], labels: {a: b}}]"
    config, _ = parse_config("e", text)
    save_config(tmp_path, config)
    assert load_config(tmp_path) == config
    with pytest.raises(EdgeConfigError, match="holds no edge"):
        load_config(tmp_path / "other")
    assert plain_config("x").nodes[0].name == "x-control-plane"
