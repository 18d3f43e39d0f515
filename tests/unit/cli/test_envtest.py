"""Flags of kube-apiserver become settings of this server."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from skerry.cli.envtest import given_flags, server_settings
from skerry.cli.main import main


def test_flags_are_taken_in_every_form_that_go_programs_take() -> None:
    flags = given_flags(["--a=1", "--b", "2", "-c=3", "--on", "--d=4", "--d=5", "--e=x=y"])
    assert flags == {"a": "1", "b": "2", "c": "3", "on": "true", "d": "4,5", "e": "x=y"}


def test_a_certificate_in_the_given_folder_is_shown_to_everybody(tmp_path: Path) -> None:
    for name in ("apiserver.crt", "apiserver.key"):
        (tmp_path / name).touch()
    settings = server_settings({"cert-dir": str(tmp_path), "secure-port": "7443"})
    assert settings["tls_cert_file"] == tmp_path / "apiserver.crt"
    assert settings["tls_cert_to_all"]
    assert (settings["port"], settings["controllers"]) == (7443, "none")


def test_without_one_the_server_shows_its_own(tmp_path: Path) -> None:
    settings = server_settings({"cert-dir": str(tmp_path)})
    assert "tls_cert_file" not in settings
    assert not settings["tls_cert_to_all"]


@pytest.mark.parametrize(
    ("flag", "value", "sentence"),
    [
        ("disable-admission-plugins", "ServiceAccount,No", "No cannot be left out"),
        ("controllers", "some", "some: want all, core or none"),
    ],
)
def test_a_value_that_nothing_stands_for_is_refused_by_name(
    flag: str, value: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"--{flag}: {sentence}"):
        server_settings({flag: value})


def test_assets_can_be_written_again(tmp_path: Path) -> None:
    for _ in range(2):
        ended = CliRunner().invoke(main, ["envtest", "assets", str(tmp_path / "a")])
        assert (ended.exit_code, ended.output) == (0, f"{tmp_path / 'a'}\n")
    assert (tmp_path / "a" / "kube-apiserver").stat().st_mode & 0o111
    assert (tmp_path / "a" / "etcd").stat().st_mode & 0o111
