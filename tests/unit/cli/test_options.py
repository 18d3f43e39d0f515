"""Flags of server commands become settings."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from skerry.app.settings import ServerSettings
from skerry.cli.main import main
from skerry.cli.options import server_flags


def settings_of(*arguments: str) -> ServerSettings:
    found: list[ServerSettings] = []

    @click.command()
    @server_flags
    def command(settings: ServerSettings) -> None:
        found.append(settings)

    ended = CliRunner().invoke(command, list(arguments))
    assert ended.exit_code == 0, ended.output
    return found[0]


def test_without_flags_everything_is_as_documented() -> None:
    settings = settings_of()
    assert settings.data_dir == Path(".skerry")
    assert settings.bind_address == "127.0.0.1"
    assert settings.port == 6443
    assert settings.store.kind == "sqlite"
    assert settings.store.path == Path(".skerry/store.db")
    assert settings.controllers == "core"
    assert settings.anonymous


def test_flags_reach_their_settings(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("sesame\n")
    clients = tmp_path / "clients.crt"
    clients.touch()
    settings = settings_of(
        *("--client-ca-file", str(clients)),
        *("--data-dir", str(tmp_path / "d"), "--port", "0", "--bind-address", "0.0.0.0"),
        *("--store", "etcd", "--etcd-servers", "http://a:1,http://b:2", "--etcd-prefix", "/x/"),
        *("--etcd-user", "ali", "--etcd-password-file", str(password)),
        *("--tls-san", "one.example", "--tls-san", "two.example"),
        *("--external-hostname", "hub.example", "--controllers", "none", "--no-anonymous-auth"),
        *("--log-format", "json", "-v", "4", "--audit-log", str(tmp_path / "audit")),
    )
    assert settings.data_dir == tmp_path / "d"
    assert settings.port == 0
    assert settings.store.kind == "etcd"
    assert settings.store.etcd_servers == ("http://a:1", "http://b:2")
    assert settings.store.etcd_prefix == "/x/"
    assert (settings.store.etcd_user, settings.store.etcd_password) == ("ali", "sesame")
    assert settings.tls_sans == ("one.example", "two.example")
    assert settings.external_hostname == "hub.example"
    assert settings.client_ca_file == clients
    assert settings.controllers == "none"
    assert not settings.anonymous
    assert (settings.log_format, settings.verbosity) == ("json", 4)
    assert settings.audit_log == tmp_path / "audit"


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "70000"),
        ("serve", "--store", "paper"),
        ("serve", "--token-auth-file", "/nowhere"),
        ("serve", "--unknown"),
        ("hub", "--webhook-network", "10.0.0.1/8"),
        ("hub", "--webhook-network", "everywhere"),
        ("sail",),
    ],
)
def test_flags_that_make_no_sense_end_with_two(arguments: tuple[str, ...]) -> None:
    ended = CliRunner().invoke(main, list(arguments))
    assert ended.exit_code == 2
    assert "Error: " in ended.output


def test_every_command_explains_itself() -> None:
    printed = CliRunner().invoke(main, ["--help"]).output
    for name in ("serve", "backup", "restore", "demo"):
        assert name in printed
        assert "Usage: " in CliRunner().invoke(main, [name, "--help"]).output


def test_oidc_flags_are_named_as_kube_apiservers_and_reach_their_settings() -> None:
    oidc = settings_of(
        *("--oidc-issuer-url", "https://login.example", "--oidc-client-id", "a"),
        *("--oidc-client-id", "b", "--oidc-username-claim", "email"),
        *("--oidc-username-prefix", "-", "--oidc-groups-claim", "groups"),
        *("--oidc-groups-prefix", "g:", "--oidc-required-claim", "hd=example.org"),
        *("--oidc-required-claim", "x=a=b", "--oidc-signing-algs", "RS256,ES256"),
    ).oidc
    assert oidc is not None
    assert oidc.issuer_url == "https://login.example"
    assert oidc.client_ids == ("a", "b")
    assert (oidc.username_claim, oidc.username_prefix) == ("email", "-")
    assert (oidc.groups_claim, oidc.groups_prefix) == ("groups", "g:")
    assert oidc.required_claims == {"hd": "example.org", "x": "a=b"}
    assert oidc.signing_algs == ("RS256", "ES256")
    assert settings_of().oidc is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("--oidc-client-id", "a"),
        ("--oidc-issuer-url", "https://x", "--oidc-required-claim", "novalue"),
        ("--oidc-issuer-url", "https://x", "--oidc-required-claim", "=x"),
    ],
)
def test_oidc_flags_that_make_no_sense_together_are_refused(arguments: tuple[str, ...]) -> None:
    ended = CliRunner().invoke(main, ["serve", *arguments])
    assert ended.exit_code == 2
    assert "--oidc-" in ended.output
