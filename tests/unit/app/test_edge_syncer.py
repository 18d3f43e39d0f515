"""The syncer of an embedded edge knows which mailbox it was given."""

from __future__ import annotations

from pathlib import Path

from skerry.app.edge_syncer import EdgeSyncer
from skerry.logic.fleet.syncing.manifest import hub_kubeconfig

MAILBOX = "https://hub:6443/clusters/2x"


def test_an_edge_that_joined_no_hub_has_no_syncer_to_start(tmp_path: Path) -> None:
    syncer = EdgeSyncer("berlin", tmp_path / "syncer", tmp_path / "admin.kubeconfig")
    assert syncer.mailbox == ""
    syncer.start()
    assert not syncer.process.running
    assert not (tmp_path / "syncer").exists()


def test_the_credential_is_kept_from_others_and_names_the_mailbox(tmp_path: Path) -> None:
    syncer = EdgeSyncer("berlin", tmp_path / "syncer", tmp_path / "admin.kubeconfig")
    syncer.join(hub_kubeconfig(MAILBOX, b"", "berlin", "token", "uid"))
    assert syncer.mailbox == MAILBOX
    assert (tmp_path / "syncer" / "hub.kubeconfig").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "syncer").stat().st_mode & 0o777 == 0o700


def test_flags_given_when_joining_are_used_at_every_start(tmp_path: Path) -> None:
    syncer = EdgeSyncer("berlin", tmp_path / "syncer", tmp_path / "admin.kubeconfig")
    credential = hub_kubeconfig(MAILBOX, b"", "berlin", "token", "uid")
    syncer.join(credential, ["--heartbeat-seconds", "4"])
    assert syncer.command()[-2:] == ["--heartbeat-seconds", "4"]
    syncer.join(credential)
    assert "--heartbeat-seconds" not in syncer.command()
