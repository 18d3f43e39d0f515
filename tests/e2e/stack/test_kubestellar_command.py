"""``kubestellar init``, ``start`` and ``stop`` around a hub that somebody runs."""

from __future__ import annotations

from pathlib import Path

from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.installed import installed
from tests.kit.e2e.person import Person

PREPARED = [
    "Finished augmenting root:compute for KubeStellar",
    "Finished populating the espw with kubestellar apiexports",
]


def test_a_bare_hub_is_prepared_and_its_controllers_come_and_go(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "hub").start()
    person = Person(tmp_path, hub.kubeconfig, installed(tmp_path / "bin"))
    try:
        for _ in range(2):
            said = person.lines("kubestellar init")
            assert said[:2] == PREPARED
            assert person.workspace == "root:espw"
        started = person.lines("kubestellar start")
        assert [line for line in started if "is running (log file: " in line][2:]
        assert person.workspace == "root"
        # The mailbox of a new edge is made: somebody is at work.
        person("kubectl ws create imw --enter")
        person("kubectl kubestellar prep-for-cluster florin env=prod")
        assert person("kubestellar stop").out == "kubestellar stopped .....\n"
        assert person("kubestellar stop").out == "kubestellar stopped .....\n"
    finally:
        person("kubestellar stop")
        hub.stop()


def test_without_a_hub_it_is_said_how_to_get_one(tmp_path: Path) -> None:
    config = tmp_path / "nowhere"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1/clusters/root'}}],"
        " users: [], contexts: [{name: c, context: {cluster: c, user: ''}}]}"
    )
    person = Person(tmp_path, config, installed(tmp_path / "bin"))
    said = person("kubestellar init", code=1)
    assert said.err.startswith("kubestellar: no hub answers: ")
    assert said.err.endswith("start one first: skerry hub --data-dir .kcp\n")
    assert said.err.count("\n") == 1
