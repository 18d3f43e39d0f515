"""skerry envtest: controller-runtime's envtest with this server in place of its programs.

envtest starts ``etcd`` and ``kube-apiserver`` out of the folder that ``KUBEBUILDER_ASSETS`` names.
``skerry envtest assets`` fills such a folder with two small programs, which call the other two
commands here. Flags that have no meaning for this server are passed over, and named in its output.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import click

from skerry.cli.options import FOLDER
from skerry.cli.printing import show, show_lines
from skerry.kit.log import announce, report_failure

_PROGRAM = """#!/bin/sh
exec {python} -m skerry.cli envtest {command} "$@"
"""
# envtest asks for help to learn which flags there are; what it looks for must not be named.
_FLAGS = {"add_help_option": False, "context_settings": {"ignore_unknown_options": True}}
_ARGUMENTS = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)


@click.group()
def envtest() -> None:
    """Run controller-runtime's envtest on this server: no kube-apiserver, no etcd."""


@envtest.command(
    epilog="""\b
Example:
  export KUBEBUILDER_ASSETS=$(skerry envtest assets)
  go test ./...
"""
)
@click.argument("directory", type=FOLDER, default=Path(".envtest"))
def assets(directory: Path) -> None:
    """Fill DIRECTORY for KUBEBUILDER_ASSETS and print its absolute path.

    It gets kube-apiserver, etcd and, where there is one on the PATH, kubectl.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for command in ("kube-apiserver", "etcd"):
            program = directory / command
            python = shlex.quote(sys.executable)
            program.write_text(_PROGRAM.format(python=python, command=command))
            program.chmod(0o755)
        kubectl, link = shutil.which("kubectl"), directory / "kubectl"
        if kubectl is not None and not link.exists():
            link.symlink_to(kubectl)
    except OSError as error:
        report_failure("skerry envtest assets", f"cannot write {directory}: {error.strerror}")
        sys.exit(1)
    announce(str(directory.absolute()))


@envtest.command("kube-apiserver", hidden=True, **_FLAGS)
@_ARGUMENTS
def kube_apiserver(arguments: tuple[str, ...]) -> None:
    """Serve as kube-apiserver would that got ARGUMENTS, with objects in memory."""
    flags = given_flags(arguments)
    if "help" in flags:
        show_lines(["kube-apiserver, by skerry serve:", *(f"  --{name}" for name in _KNOWN)])
        return
    # Only now: who asks for help does not wait for the server to load.
    from skerry.app.settings import ServerSettings, StoreSettings
    from skerry.app.standalone import PLAIN_SERVER, StartError, run_server

    if passed_over := sorted(flags.keys() - _KNOWN.keys()):
        names = ", ".join(f"--{name}" for name in passed_over)
        show(f"kube-apiserver, by skerry serve: passes over {names}", error=True)
    try:
        settings = ServerSettings(
            store=StoreSettings(kind="memory"), workers=0, **server_settings(flags)
        )
        run_server(settings, PLAIN_SERVER, announce=announce)
    except (StartError, ValueError) as error:
        report_failure("kube-apiserver, by skerry serve", error)
        sys.exit(1)


@envtest.command(hidden=True, **_FLAGS)
@_ARGUMENTS
def etcd(arguments: tuple[str, ...]) -> None:
    """Answer that etcd is well: the server keeps its objects itself."""
    flags = given_flags(arguments)
    if "help" in flags:
        announce("etcd, which keeps nothing: skerry serve has a store of its own")
        return
    url = urlsplit(flags.get("listen-client-urls", "http://127.0.0.1:2379").partition(",")[0])

    def stop(_: int, __: FrameType | None) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    HTTPServer((url.hostname or "127.0.0.1", url.port or 2379), _Healthy).serve_forever()


class _Healthy(BaseHTTPRequestHandler):
    """Answers ``GET /health`` as etcd does."""

    def do_GET(self) -> None:
        found = self.path == "/health"
        body = b'{"health":"true","reason":""}' if found else b"404 page not found\n"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: envtest asks ten times a second."""


def given_flags(arguments: Sequence[str]) -> dict[str, str]:
    """Return *arguments* by name; of flags that are given twice, all values, by commas.

    They are ``--name=value``, ``--name value`` or ``--name``, which is "true".
    """
    found: dict[str, list[str]] = {}
    name = ""
    for argument in arguments:
        if argument.startswith("-"):
            name, equals, value = argument.lstrip("-").partition("=")
            values = found.setdefault(name, [])
            if equals:
                values.append(value)
                name = ""
        elif name:
            found[name].append(argument)
            name = ""
    return {name: ",".join(values) or "true" for name, values in found.items()}


def server_settings(flags: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that stand for the *flags* of kube-apiserver.

    A certificate is looked for where kube-apiserver does, in ``--cert-dir``; the server's folder
    is there, too, so that it goes with it.
    """
    certificates = Path(flags.get("cert-dir", "/var/run/kubernetes"))
    settings: dict[str, Any] = {
        "data_dir": certificates / "skerry",
        "bind_address": "127.0.0.1",
        # As with the programs that this stands for: nothing but the server.
        "controllers": "none",
    }
    pair = (certificates / "apiserver.crt", certificates / "apiserver.key")
    if "tls-cert-file" not in flags and all(file.exists() for file in pair):
        settings |= {"tls_cert_file": pair[0], "tls_private_key_file": pair[1]}
    for name, value in flags.items():
        if (known := _KNOWN.get(name)) is not None and known[0]:
            settings[known[0]] = known[1](value)
    settings["tls_cert_to_all"] = "tls_cert_file" in settings
    return settings


def _admission(text: str) -> tuple[str, ...]:
    from skerry.app.api_server import DISABLEABLE

    names = tuple(filter(None, text.split(",")))
    if unknown := [name for name in names if name not in DISABLEABLE]:
        raise ValueError(f"--disable-admission-plugins: {unknown[0]} cannot be left out")
    return names


def _controllers(text: str) -> str:
    if text not in ("all", "core", "none"):
        raise ValueError(f"--controllers: {text}: want all, core or none")
    return text


# The setting of each flag, and what makes it of the flag's value. Flags without a setting ask for
# what this server does anyway, or for how kube-apiserver goes about it.
_KNOWN: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "admission-control-config-file": ("admission_control_config_file", Path),
    "allow-privileged": ("", str),
    "anonymous-auth": ("anonymous", lambda text: text != "false"),
    "audit-log-path": ("audit_log", Path),
    "audit-policy-file": ("audit_policy_file", Path),
    "authorization-mode": ("", str),
    "bind-address": ("bind_address", str),
    "cert-dir": ("", str),
    "client-ca-file": ("client_ca_file", Path),
    "controllers": ("controllers", _controllers),
    "disable-admission-plugins": ("disabled_admission", _admission),
    "etcd-servers": ("", str),
    "secure-port": ("port", int),
    "service-account-issuer": ("", str),
    "service-account-key-file": ("", str),
    "service-account-signing-key-file": ("", str),
    "service-cluster-ip-range": ("service_network", str),
    "tls-cert-file": ("tls_cert_file", Path),
    "tls-private-key-file": ("tls_private_key_file", Path),
    "token-auth-file": ("token_auth_file", Path),
    "v": ("verbosity", int),
}
