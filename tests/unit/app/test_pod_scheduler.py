"""The certificate of the scheduler's port is found, kept or made up."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from skerry.app.pod_scheduler import PodSchedulerSettings, _serving_tls


def test_a_certificate_made_up_is_kept_where_configured(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    settings = PodSchedulerSettings(cert_dir=folder)
    assert isinstance(_serving_tls(settings), ssl.SSLContext)
    key, certificate = folder / "kube-scheduler.key", folder / "kube-scheduler.crt"
    first = (key.read_bytes(), certificate.read_bytes())
    assert key.stat().st_mode & 0o777 == 0o600
    _serving_tls(settings)
    assert (key.read_bytes(), certificate.read_bytes()) == first


def test_a_certificate_given_goes_before_the_folder(tmp_path: Path) -> None:
    given = tmp_path / "given"
    _serving_tls(PodSchedulerSettings(cert_dir=given))
    settings = PodSchedulerSettings(
        tls_cert_file=given / "kube-scheduler.crt",
        tls_private_key_file=given / "kube-scheduler.key",
        cert_dir=tmp_path / "unused",
    )
    _serving_tls(settings)
    assert not (tmp_path / "unused").exists()


def test_what_is_no_certificate_ends_the_start(tmp_path: Path) -> None:
    for name in ("kube-scheduler.crt", "kube-scheduler.key"):
        (tmp_path / name).write_text("nonsense")
    with pytest.raises(OSError, match="PEM"):
        _serving_tls(PodSchedulerSettings(cert_dir=tmp_path))
