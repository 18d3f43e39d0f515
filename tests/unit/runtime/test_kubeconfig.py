from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from skerry.kit.clock import SystemClock
from skerry.runtime import kubeconfig
from skerry.runtime.kubeconfig import CredentialError, Overrides, in_cluster, load
from skerry.wire.kubeconfig import KubeconfigError


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def config(name: str, server: str, user: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": user or {"token": f"token-{name}"}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}
        ],
    }


def test_the_first_file_to_say_something_wins(tmp_path: Path) -> None:
    one = written(tmp_path / "one", config("a", "https://one:6443"))
    second = config("a", "https://two:6443")
    second["contexts"].append({"name": "b", "context": {"cluster": "a", "user": "a"}})
    two = written(tmp_path / "two", second)
    found = load([tmp_path / "absent", one, two])
    assert (found.server, found.token, found.namespace) == ("https://one:6443", "token-a", "ns-a")
    assert load([one, two], Overrides(context="b")).namespace == "default"


def test_overrides_count_before_files(tmp_path: Path) -> None:
    one = written(tmp_path / "one", config("a", "https://one:6443"))
    two = written(tmp_path / "two", config("b", "https://two:6443"))
    found = load([one, two], Overrides(cluster="b", user="b", namespace="mine"))
    assert (found.server, found.token, found.namespace) == ("https://two:6443", "token-b", "mine")
    assert load([one], Overrides(token="other")).token == "other"
    assert load([], Overrides(server="http://x:1")).server == "http://x:1"


def test_files_named_inside_are_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"CA")
    (tmp_path / "token").write_text("t\n")
    document = config("a", "https://one", {"tokenFile": "token"})
    document["clusters"][0]["cluster"] |= {
        "certificate-authority": "ca.pem",
        "tls-server-name": "real",
    }
    document["users"][0]["user"]["client-key-data"] = base64.b64encode(b"KEY").decode()
    found = load([written(tmp_path / "config", document)])
    assert (found.ca, found.key, found.tls_server_name) == (b"CA", b"KEY", "real")
    assert found.token_file == tmp_path / "token"
    assert "KEY" not in repr(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": ""}, "no current-context"),
        ({"current-context": "x"}, "no context named 'x' .there are: a."),
        ({"clusters": []}, "no cluster named 'a'"),
        ({"users": None}, "no user named 'a'"),
        ({"clusters": [{"name": "a"}]}, "has no server"),
        (
            {"users": [{"name": "a", "user": {"client-certificate-data": "?"}}]},
            "client-certificate",
        ),
        ({"users": [{"name": "a", "user": {"client-key": "/absent"}}]}, "client-key"),
        ({"users": [{"name": "a", "user": {"client-key": "a\0b"}}]}, "client-key"),
        ({"users": [{"name": "a", "user": {"client-key-data": 7}}]}, "client-key"),
        ({"users": [{"name": "a", "user": {"extensions": "x"}}]}, "extensions: want a list"),
        ({"users": [{"name": "a", "user": {"exec": "x"}}]}, "exec: want a mapping with a command"),
        ({"users": [{"name": "a", "user": {"exec": {"args": []}}}]}, "want a mapping with a comm"),
        (
            {"users": [{"name": "a", "user": {"exec": {"command": "x", "env": ["y"]}}}]},
            "exec.env: want a list of mappings",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = written(tmp_path / "config", config("a", "https://one") | change)
    with pytest.raises(KubeconfigError, match=message):
        load([path])


@pytest.mark.parametrize("text", ["[1, 2]", "{", "\x00", "a:\n\t- b"])
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(KubeconfigError, match="config") as refused:
        load([tmp_path / "config"])
    assert "\n" not in str(refused.value)


async def test_a_pods_token_is_read_again_when_it_changes(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeconfigError, match="not inside a cluster"):
        in_cluster(environment, tmp_path)
    (tmp_path / "token").write_text("one")
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "namespace").write_text("here\n")
    found = in_cluster(environment, tmp_path)
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "here")
    authorization = kubeconfig._authorization(found, SystemClock())
    assert not isinstance(authorization, str)
    assert await authorization() == "Bearer one"
    fresh = tmp_path / "new"
    fresh.write_text("two")
    fresh.replace(tmp_path / "token")
    assert await authorization() == "Bearer two"


async def test_an_exec_plugin_is_asked_once_while_its_token_lasts(tmp_path: Path) -> None:
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, os, pathlib\n"
        f"path = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "count = int(path.read_text()) + 1 if path.exists() else 1\n"
        "path.write_text(str(count))\n"
        "assert json.loads(os.environ['KUBERNETES_EXEC_INFO'])['kind'] == 'ExecCredential'\n"
        "print(json.dumps({'status': {'token': os.environ['PREFIX'] + str(count),\n"
        "  'expirationTimestamp': '2001-01-01T00:00:00Z' if count == 1 else None}}))\n"
    )
    user = {
        "exec": {
            "command": sys.executable,
            "args": [str(script)],
            "env": [{"name": "PREFIX", "value": "t"}],
        }
    }
    found = load([written(tmp_path / "config", config("a", "https://one", user))])
    authorization = kubeconfig._authorization(found, SystemClock())
    assert not isinstance(authorization, str)
    assert [await authorization() for _ in range(3)] == ["Bearer t1", "Bearer t2", "Bearer t2"]


async def test_a_plugin_that_fails_is_named(tmp_path: Path) -> None:
    user = {"exec": {"command": "false"}}
    found = load([written(tmp_path / "config", config("a", "https://one", user))])
    authorization = kubeconfig._authorization(found, SystemClock())
    assert not isinstance(authorization, str)
    with pytest.raises(KubeconfigError, match="false: exit code 1"):
        await authorization()


def test_a_name_and_password_are_sent_as_basic_authorization(tmp_path: Path) -> None:
    user = {"username": "u", "password": "p"}
    found = load([written(tmp_path / "config", config("a", "https://one", user))])
    assert kubeconfig._authorization(found, SystemClock()) == "Basic dTpw"


@pytest.mark.parametrize("server", ["ftp://x", "one:6443", "https://", "x y"])
async def test_a_server_that_is_no_url_is_refused(server: str) -> None:
    with pytest.raises(KubeconfigError, match="want a URL"):
        kubeconfig.connect(kubeconfig.ClientConfig(server))


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("https://x:99999", "Port out of range"),
        ("https://x:y", "Port could not be cast"),
        ("https://[::1", "Invalid IPv6 URL"),
    ],
)
async def test_a_port_or_an_address_that_there_cannot_be_is_named(
    server: str, message: str
) -> None:
    with pytest.raises(KubeconfigError, match=message):
        kubeconfig.connect(kubeconfig.ClientConfig(server))


@pytest.mark.parametrize("text", [b"hello", b"\xff\xfe"])
async def test_what_is_no_certificate_is_called_that(text: bytes) -> None:
    with pytest.raises(KubeconfigError, match="certificate-authority: want certificates in PEM"):
        kubeconfig.connect(kubeconfig.ClientConfig("https://x", ca=text))
    with pytest.raises(KubeconfigError, match="client-certificate and client-key: want a cert"):
        kubeconfig.connect(kubeconfig.ClientConfig("https://x", certificate=text))


async def test_a_token_that_fits_into_no_header_is_refused_and_not_repeated(
    tmp_path: Path,
) -> None:
    async def refused(**user: Any) -> str:
        found = load([written(tmp_path / "config", config("a", "https://one", user))])

        async def ask() -> None:
            authorization = kubeconfig._authorization(found, SystemClock())
            assert not isinstance(authorization, str)
            await authorization()

        with pytest.raises(CredentialError) as error:
            await ask()
        return str(error.value)

    (tmp_path / "token").write_text("secret\ntoken")
    printing = ["-c", "import json; print(json.dumps({'status': {'token': 'secret\\n'}}))"]
    found = [
        await refused(token="secret\ntoken"),
        await refused(tokenFile="token"),
        await refused(tokenFile="absent"),
        await refused(exec={"command": sys.executable, "args": printing}),
    ]
    assert not [text for text in found if "secret" in text]
    assert found[0] == "kubeconfig field token: want one line of ASCII characters"
    assert "absent" in found[2]
