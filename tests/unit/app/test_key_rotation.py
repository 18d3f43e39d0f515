"""Certificates and signing keys exchanged under a running server, with clients connected."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from skerry.app import key_files
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, Running, StartError, serving
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.server.http.message import Peer, Request, Response
from skerry.server.security.encryption import EncryptedStore
from skerry.server.security.pki import (
    Authority,
    Credential,
    certificate_name,
    new_ca,
    read_authorities,
)
from skerry.server.security.tls import is_named
from skerry.server.user import User
from skerry.store.base import Write
from tests.kit.server.certificates import client_context
from tests.kit.server.clock import HandClock

ADMIN = Peer(user=User("admin", groups=("system:masters",)))
KEYS = "/extensions/v1/keys"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = "/api/v1/namespaces/default/secrets"


@dataclass
class Server:
    """A server, asked from inside as its administrator and from outside over TLS."""

    running: Running
    folder: Path

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def port(self) -> int:
        return int(self.running.url.rpartition(":")[2])

    def roots(self) -> list[bytes]:
        return list(read_authorities(self.pki).roots.values())

    def admin(self) -> Credential:
        return Credential(*((self.pki / f"admin.{form}").read_bytes() for form in ("crt", "key")))

    async def ask(self, method: str, path: str, obj: Any = None, **headers: str) -> tuple[int, Any]:
        body = b"" if obj is None else json.dumps(obj).encode()
        sent = {"content-type": "application/json", **headers}
        peer = ADMIN if not headers else Peer()
        bare, _, query = path.partition("?")
        answer = await self.running.api.engine.handle(
            Request(method, bare, query, sent, body, peer)
        )
        assert isinstance(answer, Response)
        raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        return answer.status, json.loads(raw) if raw.startswith(b"{") else raw

    async def step(self, operation: str, **more: str) -> tuple[int, Any]:
        return await self.ask("POST", KEYS, {"operation": operation, **more})

    async def token(self) -> str:
        spec = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        code, made = await self.ask("POST", f"{ACCOUNT}/robot/token", spec)
        assert code == 201, made
        return str(made["status"]["token"])

    async def whoami(self, token: str) -> int:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        return (await self.ask("POST", path, review, authorization=f"Bearer {token}"))[0]


@contextlib.asynccontextmanager
async def running_server(
    folder: Path, clock: HandClock | None = None, **more: Any
) -> AsyncIterator[Server]:
    log.configure(verbosity=0)
    settings = ServerSettings(
        data_dir=folder, port=0, store=StoreSettings(path=folder / "store.db"), **more
    )
    async with serving(settings, PLAIN_SERVER, clock) as running:
        yield Server(running, folder)


class Client:
    """One connection over TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    @contextlib.asynccontextmanager
    async def connected(
        cls, server: Server, trusted: bytes, shown: Credential | None = None, name: str = ""
    ) -> AsyncIterator[Client]:
        tls = client_context(trusted, shown)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=tls, server_hostname=name or "127.0.0.1"
        )
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    @property
    def certificate(self) -> x509.Certificate:
        found = self.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(found)

    async def status(self, path: str = "/api", *, more: str = "") -> int:
        """Ask for *path*; return the code, and leave the body of a stream unread."""
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-le")]
        if length:
            await self.reader.readexactly(int(length[0].split(b":")[1]))
        return int(head.split()[1])

    async def line(self) -> bytes:
        async with asyncio.timeout(60):
            return await self.reader.readuntil(b"}\n")


async def test_an_authority_is_rotated_under_connected_clients(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data") as server:
        (old,), admin = server.roots(), server.admin()
        clients = contextlib.AsyncExitStack()
        async with clients:
            watching = await clients.enter_async_context(Client.connected(server, old, admin))
            assert await watching.status(f"{SECRETS}?watch=1") == 200
            name = key_files.add_authority(server.pki)
            assert (await server.step("reload"))[0] == 200
            # Known but not used: nothing a client sees has changed.
            async with Client.connected(server, old, admin) as client:
                assert client.certificate.issuer == x509.load_pem_x509_certificate(old).subject
            code, status = await server.step("use", kind="authority", name=name)
            assert (code, status["authority"]["current"]) == (200, name)
            new = server.roots()[1]
            renewed = server.admin()
            assert renewed != admin
            issuer = x509.load_pem_x509_certificate(new).subject
            for trusted in (old, new, old + new):
                for shown in (admin, renewed, None):
                    async with Client.connected(server, trusted, shown) as client:
                        assert client.certificate.issuer == issuer
                        assert await client.status() == (403 if shown is None else 200)
            # The watch that was open goes on, on the same connection.
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}
            assert (await server.ask("POST", SECRETS, secret))[0] == 201
            assert b'"name":"one"' in await watching.line()
            await published(server, old, new)
            refused, result = await server.step("use", kind="authority", name=name_of(old))
            assert refused == 409
            assert "has signed before" in result["message"]
            # The overlap ends: who came by the old authority is not let in any more.
            assert (await server.step("dropOld", kind="authority"))[0] == 200
            assert await ended(watching)
            with pytest.raises(ssl.SSLError):
                async with Client.connected(server, old, renewed):
                    pass
            async with Client.connected(server, new, renewed) as client:
                assert await client.status() == 200
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                async with Client.connected(server, new, admin) as client:
                    await client.status()
            await published(server, new)
        assert key_files.keep_authorities(server.pki, {name}) == [name_of(old)]
    async with (
        running_server(tmp_path / "data") as server,
        Client.connected(server, new, renewed) as client,
    ):
        assert await client.status() == 200
        assert server.roots() == [new]


def name_of(root: bytes) -> str:
    return certificate_name(root)


async def ended(client: Client) -> bool:
    """Tell whether a stream ends, one way or another."""
    async with asyncio.timeout(60):
        while True:
            try:
                chunk = await client.reader.readuntil(b"\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return True
            if chunk == b"0\r\n":
                return True


async def published(server: Server, *authorities: bytes) -> None:
    """Wait until exactly these authorities are published wherever somebody may learn of them."""
    wanted = {name_of(each) for each in authorities}

    def found(pem: str) -> set[str]:
        ends = "-----END CERTIFICATE-----\n"
        return {name_of((part + ends).encode()) for part in pem.split(ends) if part.strip()}

    _, bundle = await server.ask("GET", "/extensions/v1/ca-bundle")
    assert found(bundle.decode()) == wanted
    config = yaml.safe_load(server.running.kubeconfig.read_text())
    data = config["clusters"][0]["cluster"]["certificate-authority-data"]
    assert found(base64.b64decode(data).decode()) == wanted
    path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
    async with asyncio.timeout(60):
        while True:
            code, published = await server.ask("GET", path)
            if code == 200 and found(published["data"]["ca.crt"]) == wanted:
                return
            await asyncio.sleep(0.01)


async def test_an_open_connection_of_a_retired_authority_is_refused_on_its_next_request(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, controllers="none") as server:
        (old,), admin = server.roots(), server.admin()
        async with Client.connected(server, old, admin) as client:
            assert await client.status() == 200
            name = key_files.add_authority(server.pki)
            await server.step("reload")
            await server.step("use", kind="authority", name=name)
            assert await client.status() == 200
            await server.step("dropOld", kind="authority")
            assert await client.status() == 401


async def test_a_signing_key_is_rotated_and_tokens_of_both_hold_until_the_old_one_is_retired(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, controllers="none") as server:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        assert (await server.ask("POST", ACCOUNT, account))[0] == 201
        before = await server.token()
        (root,) = server.roots()
        async with Client.connected(server, root) as client:
            bearer = f"Authorization: Bearer {before}\r\n"
            # Anybody authenticated may watch what they may not read; that is enough of a stream.
            role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                    "metadata": {"name": "robot"},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                "name": "cluster-admin"},
                    "subjects": [{"kind": "ServiceAccount", "name": "robot",
                                  "namespace": "default"}]}  # fmt: skip
            bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
            assert (await server.ask("POST", bindings, role))[0] == 201
            assert await client.status(f"{SECRETS}?watch=1", more=bearer) == 200
            name = key_files.add_signing_key(server.pki)
            await server.step("reload")
            assert await server.whoami(before) == 201
            assert (await server.step("use", kind="signing", name=name))[0] == 200
            after = await server.token()
            assert await server.whoami(before) == await server.whoami(after) == 201
            assert len((await server.ask("GET", "/openid/v1/jwks"))[1]["keys"]) == 2
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}
            await server.ask("POST", SECRETS, secret)
            assert b'"name":"one"' in await client.line()
            assert (await server.step("dropOld", kind="signing"))[0] == 200
            assert await server.whoami(before) == 401
            assert await server.whoami(after) == 201
            assert await ended(client)
            assert len((await server.ask("GET", "/openid/v1/jwks"))[1]["keys"]) == 1
        key_files.keep_signing_keys(server.pki, {name})
    async with running_server(tmp_path, controllers="none") as server:
        assert await server.whoami(after) == 201


def given(folder: Path, authority: Credential, *names: str) -> tuple[Path, Path]:
    """Write a certificate for *names* and its key, as a person would."""
    made = Authority(authority, SystemClock()).server(names[0], names)
    folder.mkdir(exist_ok=True)
    (folder / "tls.key").write_bytes(made.key)
    (folder / "tls.crt").write_bytes(made.certificate + authority.certificate)
    return folder / "tls.crt", folder / "tls.key"


async def test_a_given_certificate_is_shown_by_name_and_read_again_when_it_changes(
    tmp_path: Path,
) -> None:
    authority = new_ca("another authority", SystemClock())
    files = given(tmp_path / "given", authority, "hub.example", "*.apps.example")
    more: dict[str, Any] = {"tls_cert_file": files[0], "tls_private_key_file": files[1]}
    async with running_server(tmp_path / "data", controllers="none", **more) as server:
        (own,) = server.roots()
        theirs = authority.certificate
        for name in ("hub.example", "HUB.example", "one.apps.example"):
            async with Client.connected(server, theirs, name=name) as client:
                first = client.certificate
        async with Client.connected(server, own) as client:
            assert client.certificate != first
        async with Client.connected(server, theirs, server.admin(), "hub.example") as open_before:
            assert await open_before.status() == 200
            given(tmp_path / "given", authority, "hub.example")
            await server.step("reload")
            async with Client.connected(server, theirs, name="hub.example") as client:
                second = client.certificate
            assert second != first
            assert await open_before.status() == 200
            # A file that cannot be used changes nothing.
            files[0].write_bytes(b"half a certi")
            await server.step("reload")
            async with Client.connected(server, theirs, name="hub.example") as client:
                assert client.certificate == second
        assert "another authority" in str(
            [c.subject for c in x509.load_pem_x509_certificates(await bundle_of(server))]
        )


async def bundle_of(server: Server) -> bytes:
    found: bytes = (await server.ask("GET", "/extensions/v1/ca-bundle"))[1]
    return found


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("key", "is not the key of"),
        ("certificate", "want a certificate, PEM"),
        ("alone", "go together"),
    ],
)
async def test_a_given_certificate_that_cannot_be_used_is_named_at_the_start(
    tmp_path: Path, change: str, wanted: str
) -> None:
    authority = new_ca("another authority", SystemClock())
    certificate, key = given(tmp_path / "given", authority, "hub.example")
    more: dict[str, Any] = {"tls_cert_file": certificate, "tls_private_key_file": key}
    if change == "key":
        key.write_bytes(given(tmp_path / "other", authority, "x")[1].read_bytes())
    elif change == "certificate":
        certificate.write_text("nothing\n")
    else:
        del more["tls_private_key_file"]
    with pytest.raises(StartError, match=wanted):
        async with running_server(tmp_path / "data", **more):
            pass


async def test_certificates_that_near_their_end_are_renewed_without_a_restart(
    tmp_path: Path,
) -> None:
    class Waits(HandClock):
        """Moves on demand; sleeping is for ever."""

        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    clock = Waits(SystemClock().now() - timedelta(days=300))
    async with running_server(tmp_path, clock, controllers="none") as server:
        (root,), admin = server.roots(), server.admin()
        async with Client.connected(server, root, admin) as client:
            first = client.certificate
            clock.advance(timedelta(days=300).total_seconds())
            await server.step("reload")
            assert await client.status() == 200
            async with Client.connected(server, root, server.admin()) as other:
                assert other.certificate != first
                assert await other.status() == 200
        assert server.admin() != admin
        users = yaml.safe_load(server.running.kubeconfig.read_text())["users"]
        kept = base64.b64decode(users[0]["user"]["client-certificate-data"])
        assert kept == server.admin().certificate


@pytest.mark.parametrize(
    ("name", "names", "good"),
    [
        ("a.example", ("a.example",), True),
        ("A.Example.", ("a.example",), True),
        ("b.a.example", ("*.a.example",), True),
        ("c.b.a.example", ("*.a.example",), False),
        ("a.example", ("*.a.example", "*.b"), False),
        ("example", ("*.",), False),
        ("x", (), False),
    ],
)
def test_a_host_is_named_by_itself_or_by_a_wildcard_for_its_first_label(
    name: str, names: tuple[str, ...], good: bool
) -> None:
    assert is_named(name, names) == good


async def test_a_server_without_its_encryption_key_does_not_start_and_says_why(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, controllers="none"):
        pass
    keys = tmp_path / "pki" / "encryption.keys"
    keys.unlink()
    with pytest.raises(StartError, match=r"encryption.keys is not there; copy the file from a hub"):
        async with running_server(tmp_path):
            pass
    assert not keys.exists()
    keys.write_text(f"other: {'A' * 43}=\n")
    with pytest.raises(StartError, match="has only other"):
        async with running_server(tmp_path):
            pass


async def test_a_secret_that_was_tampered_with_costs_its_readers_an_error_and_nobody_else_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_server(tmp_path, controllers="none") as server:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s"},
            "stringData": {"password": "swordfish"},
        }
        assert (await server.ask("POST", SECRETS, secret))[0] == 201
        (root,), admin = server.roots(), server.admin()
        async with Client.connected(server, root, admin) as watching:
            assert await watching.status(f"{SECRETS}?watch=1") == 200
            assert b'"name":"s"' in await watching.line()
            store = server.running.api.store
            assert isinstance(store, EncryptedStore)
            key = "/core/secrets/local/default/s"
            entry = await store.below.get(key)
            assert entry is not None
            for changed in (
                entry.value[:-1] + bytes([entry.value[-1] ^ 1]),
                b"skerry:enc:aesgcm:v1:unknown:" + b"x" * 40,
            ):
                await store.below.commit([Write(key, changed)])
                code, result = await server.ask("GET", f"{SECRETS}/s")
                assert (code, result["reason"]) == (500, "InternalError")
                assert (await server.ask("GET", "/api/v1/namespaces/default"))[0] == 200
            # Put right, it is sent to whoever watched all along.
            await store.below.commit([Write(key, entry.value)])
            assert (await server.ask("GET", f"{SECRETS}/s"))[0] == 200
            other = {**secret, "metadata": {"name": "t"}}
            assert (await server.ask("POST", SECRETS, other))[0] == 201
            seen = b""
            while b'"name":"t"' not in seen:
                seen = await watching.line()
    assert "swordfish" not in capsys.readouterr().err


def rsa_client(name: str) -> tuple[bytes, Credential]:
    """Return an authority with an RSA key, as openssl makes them, and a client of it."""
    ca_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    issuer, subject = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in ("rsa-ca", name)
    )
    now = SystemClock().now()

    def signed(of: x509.Name, public: rsa.RSAPublicKey, *, ca: bool) -> bytes:
        builder = (
            x509.CertificateBuilder(issuer, of, public, x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        return builder.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    leaf = signed(subject, key.public_key(), ca=False)
    return signed(issuer, ca_key.public_key(), ca=True), Credential(leaf, pem)


async def test_given_authorities_vouch_for_clients_until_the_file_says_otherwise(
    tmp_path: Path,
) -> None:
    rsa_authority, jane = rsa_client("jane")
    ca = new_ca("ec-ca", SystemClock())
    root = Authority(ca, SystemClock()).client("joe", ("system:masters",))
    file = tmp_path / "clients.crt"
    file.write_bytes(rsa_authority + ca.certificate)
    async with running_server(tmp_path / "data", client_ca_file=file) as server:
        (own,) = server.roots()
        for shown, secrets in ((jane, 403), (root, 200), (server.admin(), 200)):
            async with Client.connected(server, own, shown) as client:
                assert await client.status("/api") == 200, "it is somebody"
                assert await client.status(SECRETS) == secrets
        clients = contextlib.AsyncExitStack()
        async with clients:
            watching = await clients.enter_async_context(Client.connected(server, own, root))
            assert await watching.status(f"{SECRETS}?watch=1") == 200
            file.write_bytes(rsa_authority)
            assert (await server.step("reload"))[0] == 200
            assert await ended(watching), "nobody vouches for it any more"
            # How the refusal is noticed depends on who is faster.
            with pytest.raises((ssl.SSLError, asyncio.IncompleteReadError, ConnectionError)):
                async with Client.connected(server, own, root) as client:
                    await client.status()
            async with Client.connected(server, own, jane) as client:
                assert await client.status() == 200


async def test_a_file_without_authorities_keeps_the_server_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "clients.crt"
    file.write_text("x")
    with pytest.raises(StartError, match="want certificates of authorities"):
        async with running_server(tmp_path / "data", client_ca_file=file):
            pass
