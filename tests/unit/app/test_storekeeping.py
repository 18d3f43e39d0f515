"""skerry backup and restore: what becomes of the keys a server is recognised by."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skerry.app import hub_keys
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, serving
from skerry.cli.main import main
from skerry.kit import log
from skerry.server.http.message import Peer, Request, Response
from skerry.server.user import User
from skerry.store.backup import BackupFile

ADMIN = Peer(user=User("admin", groups=("system:masters",)))
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s"},
    "stringData": {"password": "swordfish"},
}


def settings_of(folder: Path) -> ServerSettings:
    store = StoreSettings(path=folder / "store.db")
    return ServerSettings(data_dir=folder, port=0, store=store, controllers="none")


async def _ask(folder: Path, method: str, path: str, obj: object = None) -> tuple[int, bytes]:
    log.configure(verbosity=0)
    async with serving(settings_of(folder), PLAIN_SERVER) as running:
        body = b"" if obj is None else json.dumps(obj).encode()
        request = Request(method, path, "", {"content-type": "application/json"}, body, ADMIN)
        answer = await running.api.engine.handle(request)
        assert isinstance(answer, Response)
        raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        return answer.status, raw


def ask(folder: Path, method: str, path: str, obj: object = None) -> tuple[int, bytes]:
    """Ask a server that runs just for that."""
    return asyncio.run(_ask(folder, method, path, obj))


def run(command: str, folder: Path, *arguments: object) -> Result:
    return CliRunner().invoke(
        main, [command, "--data-dir", str(folder), *(str(each) for each in arguments)]
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server that has a Secret, backed up in both ways, and a passphrase."""
    place = tmp_path_factory.mktemp("backups")
    (place / "passphrase").write_text("open sesame\n")
    (place / "wrong").write_text("mellon\n")
    source = place / "source"
    assert ask(source, "POST", "/api/v1/namespaces/default/secrets", SECRET)[0] == 201
    done = run("backup", source, "--passphrase-file", place / "passphrase", place / "sealed")
    assert done.exit_code == 0, done.output
    assert " objects with keys at revision " in done.output
    done = run("backup", source, "--without-keys", place / "plain")
    assert done.exit_code == 0, done.output
    return place


def password_in(folder: Path) -> str | None:
    """Return the Secret's password as a server over *folder* serves it; None without one."""
    code, body = ask(folder, "GET", "/api/v1/namespaces/default/secrets/s")
    if code == 404:
        return None
    return base64.b64decode(json.loads(body)["data"]["password"]).decode()


def test_a_backup_must_say_what_becomes_of_the_keys(place: Path, tmp_path: Path) -> None:
    both = ("--without-keys", "--passphrase-file", place / "passphrase")
    for flags in ((), both):
        done = run("backup", place / "source", *flags, tmp_path / "b")
        assert done.exit_code == 2
        assert "--passphrase-file FILE (keys and certificates are in the backup" in done.output
    (tmp_path / "empty").write_text("\n")
    done = run("backup", place / "source", "--passphrase-file", tmp_path / "empty", tmp_path / "b")
    assert done.exit_code == 2
    assert "the file is empty" in done.output
    assert not (tmp_path / "b").exists()


def test_no_backup_shows_a_secret_or_a_key(place: Path) -> None:
    keys = {path.read_bytes() for path in (place / "source" / "pki").iterdir()}
    for name in ("sealed", "plain"):
        content = (place / name).read_bytes()
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o600
        assert base64.b64encode(b"swordfish") not in content
        for key in keys:
            assert key not in content
            assert base64.b64encode(key) not in content
            assert name == "plain" or b"open sesame" not in content


def test_a_backup_with_keys_brings_back_the_same_server(place: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    done = run("restore", new, "--passphrase-file", place / "passphrase", place / "sealed")
    assert done.exit_code == 0, done.output
    assert " objects and the keys from " in done.output
    for path in (place / "source" / "pki").iterdir():
        copy = new / "pki" / path.name
        assert copy.read_bytes() == path.read_bytes()
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE((new / "pki").stat().st_mode) == 0o700
    assert password_in(new) == "swordfish"


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (("--passphrase-file", "wrong"), "the passphrase is not the one it was written with"),
        ((), "is encrypted: its passphrase is needed (--passphrase-file)"),
        (("--passphrase-file", "passphrase", "--new-keys"), "leave out --new-keys"),
    ],
)
def test_a_refused_restore_makes_nothing(
    place: Path, tmp_path: Path, flags: tuple[str, ...], wanted: str
) -> None:
    named = [place / flag if (place / flag).exists() else flag for flag in flags]
    done = run("restore", tmp_path / "new", *named, place / "sealed")
    assert done.exit_code == 1
    assert wanted in done.output
    assert "mellon" not in done.output
    assert not (tmp_path / "new").exists()


def test_a_damaged_backup_makes_nothing(place: Path, tmp_path: Path) -> None:
    content = (place / "sealed").read_bytes()
    changed = content[:-10] + bytes([content[-10] ^ 1]) + content[-9:]
    for number, broken in enumerate((content[:-1], changed)):
        (tmp_path / "broken").write_bytes(broken)
        new = tmp_path / f"new{number}"
        done = run("restore", new, "--passphrase-file", place / "passphrase", tmp_path / "broken")
        assert done.exit_code == 1
        assert "is damaged or cut off" in done.output
        assert not new.exists()


def test_without_its_keys_a_server_is_not_restored_unless_asked_for(
    place: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    done = run("restore", new, place / "plain")
    assert done.exit_code == 1
    for wanted in ("certificate authority", "signing key", "encrypted with", "--new-keys"):
        assert wanted in done.output
    assert not new.exists()
    done = run("restore", new, "--new-keys", place / "plain")
    assert done.exit_code == 0, done.output
    assert "without 1 Secrets whose encryption key is not there" in done.output
    assert password_in(new) is None
    assert ask(new, "GET", "/api/v1/namespaces/default")[0] == 200


def test_beside_its_old_keys_a_backup_without_keys_restores(place: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    shutil.copytree(place / "source" / "pki", new / "pki")
    done = run("restore", new, place / "plain")
    assert done.exit_code == 0, done.output
    assert password_in(new) == "swordfish"


@pytest.mark.parametrize("missing", ["ca.key", "sa.key", "encryption.keys"])
def test_with_a_part_of_its_keys_a_server_is_not_restored(
    place: Path, tmp_path: Path, missing: str
) -> None:
    new = tmp_path / "new"
    shutil.copytree(place / "source" / "pki", new / "pki")
    (new / "pki" / missing).unlink()
    done = run("restore", new, place / "plain")
    assert done.exit_code == 1
    assert missing in done.output
    assert not (new / "store.db").exists()


def test_keys_that_are_there_are_never_replaced(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    ask(other, "GET", "/api")
    for path in other.glob("store.db*"):
        path.unlink()
    before = {path.name: path.read_bytes() for path in (other / "pki").iterdir()}
    flags = ("--passphrase-file", place / "passphrase")
    done = run("restore", other, *flags, place / "sealed")
    assert done.exit_code == 1
    assert "already has other keys" in done.output
    assert {path.name: path.read_bytes() for path in (other / "pki").iterdir()} == before


def test_a_store_that_is_not_empty_gets_neither_objects_nor_keys(
    place: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    ask(other, "GET", "/api")
    shutil.rmtree(other / "pki")
    done = run("restore", other, "--passphrase-file", place / "passphrase", place / "sealed")
    assert done.exit_code == 1
    assert "the store is not empty" in done.output
    assert not (other / "pki").exists()


def test_a_backup_with_keys_is_refused_where_a_key_is_missing(place: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(place / "source", source)
    (source / "pki" / "encryption.keys").rename(tmp_path / "elsewhere")
    flags = ("--passphrase-file", place / "passphrase")
    done = run("backup", source, *flags, tmp_path / "b")
    assert done.exit_code == 1
    assert "name the file that has it with --encryption-key-file" in done.output
    assert not (tmp_path / "b").exists()
    given = ("--encryption-key-file", tmp_path / "elsewhere")
    assert run("backup", source, *flags, *given, tmp_path / "b").exit_code == 0
    (source / "pki" / "ca.key").unlink()
    done = run("backup", source, *flags, *given, tmp_path / "c")
    assert "has no authority key" in done.output


# Backups of the version before: objects only, and no word about keys.


@pytest.fixture
def old_backup(place: Path, tmp_path: Path) -> Path:
    import hashlib

    magic, header, rest = (place / "plain").read_bytes()[:-32].split(b"\n", 2)
    said = json.loads(header)
    del said["fingerprints"]
    content = magic + b"\n" + json.dumps(said).encode() + b"\n" + rest
    (tmp_path / "old").write_bytes(content + hashlib.sha256(content).digest())
    BackupFile(tmp_path / "old").verify()
    return tmp_path / "old"


def test_an_old_backup_restores_beside_the_old_keys_or_with_new_ones(
    place: Path, old_backup: Path, tmp_path: Path
) -> None:
    done = run("restore", tmp_path / "new", old_backup)
    assert done.exit_code == 1
    assert "--new-keys" in done.output
    assert run("restore", tmp_path / "new", "--new-keys", old_backup).exit_code == 0
    shutil.copytree(place / "source" / "pki", tmp_path / "same" / "pki")
    assert run("restore", tmp_path / "same", old_backup).exit_code == 0
    assert password_in(tmp_path / "same") == "swordfish"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", ".", "..", "a/b"])
def test_keys_in_a_backup_lead_into_no_other_folder(name: str) -> None:
    with pytest.raises(hub_keys.KeysError, match="keys in a file named"):
        hub_keys.decoded({name: ""})
